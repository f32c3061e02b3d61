/** A place in a body: `tags.0` is `["tags", "0"]`. In the key of a rule a step may be `*`, any item. */
export type Path = readonly string[];

export const toPath = (key: string): Path => key.split(".");

/** JSON arrays and objects alike; the reference knows both as arrays. */
export type Container = readonly unknown[] | Readonly<Record<string, unknown>>;

export const isContainer = (value: unknown): value is Container =>
  typeof value === "object" && value !== null;

/** How many items an array or object has. */
export const countOf = (value: Container): number =>
  Array.isArray(value) ? value.length : Object.keys(value).length;

/** One item, own properties only, so that `constructor` and `__proto__` are what the client sent or nothing. */
export function itemOf(value: unknown, key: string): unknown {
  if (Array.isArray(value)) return /^\d{1,9}$/.test(key) ? (value as unknown[])[Number(key)] : undefined;
  return isContainer(value) && Object.hasOwn(value, key)
    ? (value as Record<string, unknown>)[key]
    : undefined;
}

/** The value at a path without `*`; undefined when there is none, since JSON knows no undefined. */
export function valueAt(body: unknown, path: Path): unknown {
  let value = body;
  for (const key of path) value = itemOf(value, key);
  return value;
}

/** A path in which each `*` has been put to one of the keys there are. */
export interface Place {
  readonly path: Path;
  /** What stands for each `*`, in order. */
  readonly captures: readonly string[];
}

/**
 * Every place that a rule's key means in this body. A key without `*` is one place, whether there is something or not.
 *
 * @returns Undefined when there are more than `limit`.
 */
export function placesOf(body: unknown, pattern: Path, limit: number): readonly Place[] | undefined {
  let places: Place[] = [{ path: [], captures: [] }];
  for (const step of pattern) {
    if (step === "*") {
      const next: Place[] = [];
      for (const { path, captures } of places) {
        const value = valueAt(body, path);
        const keys = isContainer(value) ? Object.keys(value) : [];
        if (next.length + keys.length > limit) return undefined;
        for (const key of keys) next.push({ path: [...path, key], captures: [...captures, key] });
      }
      places = next;
    } else {
      places = places.map(({ path, captures }) => ({ path: [...path, step], captures }));
    }
  }
  return places;
}
