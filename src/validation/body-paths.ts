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
 * Counts of large objects, which never change. Without this cache, 10,000 items that are each
 * compared with one object of 50,000 keys take 90 s.
 */
const counts = new WeakMap<Container, number>();

/** Smaller objects are counted in less time than the cache takes. */
const leastCached = 100;

/** Returns the number of items of an array or object. */
export function countOf(value: Container): number {
  if (Array.isArray(value)) return value.length;
  const known = counts.get(value);
  if (known !== undefined) return known;
  const count = Object.keys(value).length;
  if (count > leastCached) counts.set(value, count);
  return count;
}

/**
 * Returns whether two JSON values are equal, in any order of their keys. Compares the counts first
 * and stops at the first difference, so the smaller value limits the time.
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
 * Returns the value at a path; undefined without a value, since JSON has no undefined.
 *
 * @param captures The key for each `*`, in order. A `*` without one is a key like any other.
 */
export function valueAt(body: unknown, path: Path, captures: readonly string[] = []): unknown {
  let value = body;
  let used = 0;
  for (const step of path) value = itemOf(value, step === "*" ? (captures[used++] ?? step) : step);
  return value;
}

/** Puts a key in place of each `*`: `items.*.price` for `items.3.total` is `items.3.price`. */
export function put(path: Path, captures: readonly string[]): Path {
  if (captures.length === 0) return path;
  let used = 0;
  return path.map((step) => (step === "*" ? (captures[used++] ?? step) : step));
}

/** A place in a body that matches a rule's key. Its path is `put(key, captures)`. */
export interface Place {
  readonly value: unknown;
  /** The key for each `*` of the rule's key, in order. */
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
  let places: Place[] = [{ value: body, captures: [] }];
  for (const step of pattern) {
    if (step === "*") {
      const next: Place[] = [];
      for (const { value, captures } of places) {
        if (!isContainer(value)) continue;
        if (next.length + countOf(value) > limit) return "too_many";
        for (const key of Object.keys(value)) {
          if (key.length > maxKeyLength) return "long_key";
          next.push({ value: itemOf(value, key), captures: [...captures, key] });
        }
      }
      places = next;
    } else {
      places = places.map(({ value, captures }) => ({ value: itemOf(value, step), captures }));
    }
  }
  return places;
}
