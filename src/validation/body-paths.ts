/** A place in a body: `tags.0` is `["tags", "0"]`. In the key of a rule a step may be `*`, any item. */
export type Path = readonly string[];

export const toPath = (key: string): Path => key.split(".");

/** JSON arrays and objects alike; the reference knows both as arrays. */
export type Container = readonly unknown[] | Readonly<Record<string, unknown>>;

export const isContainer = (value: unknown): value is Container =>
  typeof value === "object" && value !== null;

/** Counts of objects, which nothing changes: 10,000 items that are each compared with one object of 50,000 keys would take 90 s. */
const counts = new WeakMap<Container, number>();

/** How many items an array or object has. */
export function countOf(value: Container): number {
  if (Array.isArray(value)) return value.length;
  const known = counts.get(value) ?? Object.keys(value).length;
  counts.set(value, known);
  return known;
}

/**
 * Whether two JSON values are the same, whatever the order of their keys. Stops at the first difference, and counts before it looks, so
 * that it takes time with the smaller of the two.
 */
export function isEqual(a: unknown, b: unknown): boolean {
  if (!isContainer(a) || !isContainer(b)) return Object.is(a, b);
  if (a === b) return true;
  if (Array.isArray(a) !== Array.isArray(b) || countOf(a) !== countOf(b)) return false;
  return Object.entries(a).every(
    ([key, item]) => Object.hasOwn(b, key) && isEqual(item, (b as Readonly<Record<string, unknown>>)[key]),
  );
}

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

/** Places that one key with `*` may have in a body, and items that a list field may have. */
export const maxPlaces = 10_000;

/** Longer keys have no rules: each of 10,000 places beneath one key of 100 KB would carry it in its name. */
export const maxKeyLength = 255;

/** Why a body has places that no rule is tried on. */
export type PlacesFault = "too_many" | "long_key";

/**
 * Every place that a rule's key means in this body. A key without `*` is one place, whether there is something or not.
 *
 * @returns A fault when there are more than `limit`, or when a `*` meets a key of more than `maxKeyLength` characters.
 */
export function placesOf(body: unknown, pattern: Path, limit: number): readonly Place[] | PlacesFault {
  let places: Place[] = [{ path: [], captures: [] }];
  for (const step of pattern) {
    if (step === "*") {
      const next: Place[] = [];
      for (const { path, captures } of places) {
        const value = valueAt(body, path);
        if (!isContainer(value)) continue;
        if (next.length + countOf(value) > limit) return "too_many";
        for (const key of Object.keys(value)) {
          if (key.length > maxKeyLength) return "long_key";
          next.push({ path: [...path, key], captures: [...captures, key] });
        }
      }
      places = next;
    } else {
      places = places.map(({ path, captures }) => ({ path: [...path, step], captures }));
    }
  }
  return places;
}
