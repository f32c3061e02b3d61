import { isDeepStrictEqual } from "node:util";
import type { FileContent } from "./imported-table.ts";
import { isObject } from "../../kit/is-object.ts";

/** The merged data of a file, and the places where a person's value stayed. */
interface Merged {
  readonly content: FileContent;
  /** Places where both the table and a person changed a value. The person's value stays. */
  readonly kept: readonly string[];
}

/**
 * Brings the data of a file up to date. Changes between the last import and this one are applied to
 * the file. Everything else stays as it is.
 *
 * @param last Content that the last import wrote.
 * @param mine Current content of the file.
 * @param next Content that this import would write.
 */
export function mergeContent(last: FileContent, mine: FileContent, next: FileContent): Merged {
  const kept: string[] = [];
  return { content: mergeMap({ last, mine, next, path: "", kept }), kept };
}

interface ThreeWay<T> {
  readonly last: T;
  readonly mine: T;
  readonly next: T;
  readonly path: string;
  readonly kept: string[];
}

function mergeMap({ last, mine, next, path, kept }: ThreeWay<FileContent>): FileContent {
  const keys = orderedKeys(mine, next);
  const entries = keys.map((key) => {
    const place = path === "" ? key : `${path}.${key}`;
    const value = mergeValue({
      last: own(last, key),
      mine: own(mine, key),
      next: own(next, key),
      path: place,
      kept,
    });
    return [key, value] as const;
  });
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
}

/** Returns an own property: a field may be named `constructor`, which every object has. */
function own(map: FileContent, key: string): unknown {
  return Object.hasOwn(map, key) ? map[key] : undefined;
}

/** Returns the keys of the file, with each new key after the one that precedes it in the import. */
function orderedKeys(mine: FileContent, next: FileContent): readonly string[] {
  const keys = Object.keys(mine);
  let previous = -1;
  for (const key of Object.keys(next)) {
    const at = keys.indexOf(key);
    if (at >= 0) previous = at;
    else {
      previous += 1;
      keys.splice(previous, 0, key);
    }
  }
  return keys;
}

/** Paths of values that are merged as a whole. The items of a rule list depend on each other. */
const whole = /^(?:createRules|updateRules)\.|\.default$/;

function mergeValue(three: ThreeWay<unknown>): unknown {
  const { last, mine, next, path, kept } = three;
  if (isDeepStrictEqual(last, next) || isDeepStrictEqual(mine, next)) return mine;
  if (isDeepStrictEqual(mine, last)) return next;
  if (isObject(mine) && isObject(next) && !whole.test(path))
    return mergeMap({ ...three, last: isObject(last) ? last : {}, mine, next });
  // A field or rule that a person removed stays removed.
  if (mine === undefined) return undefined;
  if (isList(mine) && isList(next) && isList(last) && !whole.test(path)) return mergeList(last, mine, next);
  kept.push(path);
  return mine;
}

function mergeList(
  last: readonly string[],
  mine: readonly string[],
  next: readonly string[],
): readonly string[] {
  const staying = mine.filter((item) => next.includes(item) || !last.includes(item));
  const added = next.filter((item) => !last.includes(item) && !mine.includes(item));
  return [...staying, ...added];
}

function isList(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

/** Renames fields in the data of the last import, as a person has renamed them since then. */
export function renameFields(content: FileContent, names: ReadonlyMap<string, string>): FileContent {
  if (names.size === 0) return content;
  const renamed = (name: string): string => names.get(name) ?? name;
  const ofMap = (value: unknown): unknown =>
    isObject(value)
      ? Object.fromEntries(
          Object.entries(value).map(([key, item]) => {
            const [name = "", ...rest] = key.split(".");
            return [[renamed(name), ...rest].join("."), item];
          }),
        )
      : value;
  const ofList = (value: unknown): unknown =>
    Array.isArray(value)
      ? value.map((item: unknown) => (typeof item === "string" ? renamed(item) : ofList(item)))
      : value;
  const maps = ["fields", "createRules", "updateRules"];
  const lists = ["searchableColumns", "unique"];
  return Object.fromEntries(
    Object.entries(content).map(([key, value]) => {
      if (maps.includes(key)) return [key, ofMap(value)];
      if (lists.includes(key)) return [key, ofList(value)];
      return [key, key === "ownerColumn" && typeof value === "string" ? renamed(value) : value];
    }),
  );
}
