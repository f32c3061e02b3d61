import { shortened } from "../kit/did-you-mean.ts";
import type { Shown } from "../mapping/shown.ts";
import { isContainer } from "../validation/body-paths.ts";
import { keysOf, suggestionFor } from "./shown-paths.ts";

/** The selected places of a record; "all" for everything below. */
type Kept = "all" | Map<string, Kept>;

/**
 * Returns the message for a path that the JSON of the records does not have; undefined for an
 * existing path.
 */
export function fieldFault(path: string, places: ReadonlyMap<string, Shown> | undefined): string | undefined {
  if (places === undefined || keysOf(places, path) !== undefined) return undefined;
  return `There is no field ${shortened(path)}${suggestionFor(path, [...places.keys()])}`;
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
  const root = new Map<string, Kept>();
  for (const path of paths) {
    const keys = places === undefined ? path.split(".") : (keysOf(places, path) ?? []);
    keep(root, keys);
  }
  return (record) => projected(record, root);
}

function keep(kept: Map<string, Kept>, [key = "", ...rest]: readonly string[]): void {
  const below = kept.get(key);
  if (below === "all") return;
  if (rest.length === 0) {
    kept.set(key, "all");
    return;
  }
  const inner = below ?? new Map<string, Kept>();
  kept.set(key, inner);
  keep(inner, rest);
}

function projected(value: unknown, kept: Kept): unknown {
  if (kept === "all" || !isContainer(value)) return value;
  if (Array.isArray(value)) {
    const ofEach = [...kept.keys()].every((key) => /^\d+$/.test(key)) ? undefined : kept;
    return value.flatMap((item: unknown, index) => partOf(item, kept.get(String(index)) ?? ofEach));
  }
  const entries = Object.entries(value).flatMap(([key, item]) =>
    partOf(item, kept.get(key)).map((part): readonly [string, unknown] => [key, part]),
  );
  return Object.fromEntries(entries);
}

/** Returns the selected part of a member or item, in a list; empty without one. */
function partOf(item: unknown, kept: Kept | undefined): readonly unknown[] {
  // A text or a number has no members; null represents a missing object.
  const isLeaf = kept !== "all" && !isContainer(item) && item !== null;
  return kept === undefined || isLeaf ? [] : [projected(item, kept)];
}
