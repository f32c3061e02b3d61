/**
 * A path in a body: `tags.0` is `["tags", "0"]`. In the key of a rule a step may be `*`, which is
 * any item.
 */
export type Path = readonly string[];

/** Splits a key at its dots. */
export const toPath = (key: string): Path => key.split(".");

/** JSON arrays and objects, which are both arrays in Laravel. */
export type Container = readonly unknown[] | Readonly<Record<string, unknown>>;

/** Returns whether a value is an array or an object. */
export const isContainer = (value: unknown): value is Container =>
  typeof value === "object" && value !== null;

/**
 * Counts of objects, which never change. Without this cache, 10,000 items that are each compared
 * with one object of 50,000 keys take 90 s.
 */
const counts = new WeakMap<Container, number>();

/** Returns the number of items of an array or object. */
export function countOf(value: Container): number {
  if (Array.isArray(value)) return value.length;
  const known = counts.get(value) ?? Object.keys(value).length;
  counts.set(value, known);
  return known;
}

/**
 * Returns whether two JSON values are equal, whatever the order of their keys. Compares the counts
 * first and stops at the first difference, so the smaller value limits the time.
 */
export function isEqual(a: unknown, b: unknown): boolean {
  if (!isContainer(a) || !isContainer(b)) return Object.is(a, b);
  if (a === b) return true;
  if (Array.isArray(a) !== Array.isArray(b) || countOf(a) !== countOf(b)) return false;
  return Object.entries(a).every(
    ([key, item]) => Object.hasOwn(b, key) && isEqual(item, (b as Readonly<Record<string, unknown>>)[key]),
  );
}

/**
 * Returns one item. Uses own properties only, so that `constructor` and `__proto__` are values of
 * the client or undefined.
 */
export function itemOf(value: unknown, key: string): unknown {
  if (Array.isArray(value)) return /^\d{1,9}$/.test(key) ? (value as unknown[])[Number(key)] : undefined;
  return isContainer(value) && Object.hasOwn(value, key)
    ? (value as Record<string, unknown>)[key]
    : undefined;
}

/**
 * Returns the value at a path without `*`; undefined without a value, since JSON has no undefined.
 */
export function valueAt(body: unknown, path: Path): unknown {
  let value = body;
  for (const key of path) value = itemOf(value, key);
  return value;
}

/** A path with a key in place of each `*`. */
export interface Place {
  readonly path: Path;
  /** The key for each `*`, in order. */
  readonly captures: readonly string[];
}

/** Limit of the places in a body for one key with `*`, and of the items of a list field. */
export const maxPlaces = 10_000;

/**
 * Longer keys match no rule. Otherwise, 10,000 places below one key of 100 KB would each contain it
 * in their name.
 */
export const maxKeyLength = 255;

/** Reason why the rules cannot be applied to the places of a body. */
export type PlacesFault = "too_many" | "long_key";

/**
 * Returns every place of this body that matches a rule's key. A key without `*` is one place,
 * present or not.
 *
 * @returns A fault with more than `limit` places, or when a `*` matches a key of more than
 *   `maxKeyLength` characters.
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
