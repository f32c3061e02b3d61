import { shortened, suggestionFor } from "../kit/did-you-mean.ts";
import { longestPath, type Shown } from "../mapping/shown.ts";
import { isContainer } from "../validation/body-paths.ts";
import { keysOf } from "./shown-paths.ts";

/** The selected places of a record; "all" for everything below. */
type Kept = "all" | Part;

interface Part {
  readonly members: Map<string, Kept>;
  /** Whether some keys of the members are indices of a list. */
  hasIndices: boolean;
  /** Whether some keys are no indices: these select from each item of a list. */
  hasNames: boolean;
}

/**
 * Returns the message for a path that the JSON of the records does not have; undefined for an
 * existing path. When code makes the JSON, only a path that is too long has a message.
 */
export function fieldFault(path: string, places: ReadonlyMap<string, Shown> | undefined): string | undefined {
  const isFine = places === undefined ? path.length <= longestPath : keysOf(places, path) !== undefined;
  if (isFine) return undefined;
  return `There is no field ${shortened(path)}${suggestionFor(path, [...(places?.keys() ?? [])])}`;
}

/**
 * Creates the projection of the parameter `fields`: the chosen places, in the order, objects and
 * lists of the record. Null on the way stays null.
 *
 * @param paths Paths without faults (see `fieldFault`).
 * @param places Undefined where code makes the JSON: then a path that a record does not have is
 *   left out.
 */
export function createProjection(
  paths: readonly string[],
  places: ReadonlyMap<string, Shown> | undefined,
): (record: unknown) => unknown {
  const root = createPart();
  for (const path of paths) {
    const keys = places === undefined ? path.split(".") : (keysOf(places, path) ?? []);
    keep(root, keys);
  }
  return (record) => projected(record, root);
}

function createPart(): Part {
  return { members: new Map(), hasIndices: false, hasNames: false };
}

/** Copies no keys: for a path of 8,000 keys, a copy at each key took 3 s. */
function keep(root: Part, keys: readonly string[]): void {
  let part = root;
  for (const [index, key] of keys.entries()) {
    const isIndex = /^\d+$/.test(key);
    part.hasIndices ||= isIndex;
    part.hasNames ||= !isIndex;
    const below = part.members.get(key);
    if (below === "all") return;
    const inner = index === keys.length - 1 ? "all" : (below ?? createPart());
    part.members.set(key, inner);
    if (inner === "all") return;
    part = inner;
  }
}

function projected(value: unknown, kept: Kept): unknown {
  if (kept === "all" || !isContainer(value)) return value;
  const { members, hasIndices, hasNames } = kept;
  if (Array.isArray(value)) {
    const ofEach = hasNames ? kept : undefined;
    const items: unknown[] = [];
    // A list of 1 MB has 300,000 items, so nothing is made for each of them.
    for (let index = 0; index < value.length; index += 1) {
      const own = hasIndices ? members.get(String(index)) : undefined;
      const item = partOf(value[index], own ?? ofEach);
      if (item !== undefined) items.push(item);
    }
    return items;
  }
  const entries: (readonly [string, unknown])[] = [];
  for (const [key, member] of Object.entries(value)) {
    const part = partOf(member, members.get(key));
    if (part !== undefined) entries.push([key, part]);
  }
  return Object.fromEntries(entries);
}

/** Returns the selected part of a member or item; undefined without one. */
function partOf(item: unknown, kept: Kept | undefined): unknown {
  // A text or a number has no members; null represents a missing object.
  const isLeaf = kept !== "all" && !isContainer(item) && item !== null;
  return kept === undefined || isLeaf ? undefined : projected(item, kept);
}
