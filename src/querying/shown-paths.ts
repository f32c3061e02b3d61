import { shortened, unknownField } from "../kit/did-you-mean.ts";
import { countModes, type CountMode, type Definition, type Definitions } from "../mapping/definition.ts";
import {
  filterFault,
  findPlace,
  shownPlaces,
  sortFault,
  type Included,
  type Shown,
} from "../mapping/shown.ts";
import { textFault } from "../mapping/storable.ts";
import { linkOf, type Link } from "./links.ts";
import type { Filterable } from "./operators.ts";

/** A path of a record's JSON, with its field. */
export interface ShownPath extends Filterable {
  readonly path: string;
  /** Links from the record to the record with the field. */
  readonly links: readonly Link[];
  /** Keys within the value of a `Json` field; at least one. */
  readonly jsonPath?: readonly string[];
}

/** Paths that a parameter of a list may name. */
export interface PathTable {
  /** The allowed paths. A `Json` field stands for all paths in it. */
  readonly paths: ReadonlyMap<string, ShownPath>;
  /**
   * Reasons why other shown paths are not allowed, to complete "it is ...". Empty where only the
   * mapping file excludes the path.
   */
  readonly faults: ReadonlyMap<string, string>;
}

/** The names that the parameters of a list may contain. */
export interface ListShape {
  readonly filterable: PathTable;
  readonly sortable: PathTable;
  /** Every place of the JSON, for `fields`; undefined where code makes it. */
  readonly places: ReadonlyMap<string, Shown> | undefined;
  readonly includes: readonly string[];
  /** Whether conditions may be in groups: `filter[or]`, `filter[and]`, `filter[not]`. */
  readonly hasGroups: boolean;
  readonly hasSearch: boolean;
  readonly counts: readonly CountMode[];
  /**
   * Further parameters of this list only. Each function returns the fault of a value, or undefined.
   */
  readonly own: ReadonlyMap<string, (value: string) => string | undefined>;
}

/**
 * Returns the shape of the lists of a resource: the places that `transform` shows, narrowed by
 * `filterable` and `sortable`. A field that is shown under another name has the shown name. With a
 * `transform` in code, only fields that these keys list are allowed.
 *
 * @param included `include` of the base query. It is known only at run time for a base query in
 *   code.
 */
export function listShapeOf(
  definition: Definition,
  definitions: Definitions,
  included: Included = definition.baseQuery.include,
): ListShape {
  const isCode = definition.code.transform !== undefined;
  const places = shownPlaces(definition, definitions, included);
  const tableOf = (listed: readonly string[] | undefined, faultOf: typeof filterFault): PathTable => {
    const table = tableOfPlaces(places, definitions, faultOf);
    if (listed === undefined && !isCode) return table;
    const { paths, faults } = narrowed(table, listed ?? []);
    // A message must not mention fields that code may not show.
    return { paths, faults: isCode ? new Map([...faults].filter(([path]) => paths.has(path))) : faults };
  };
  return {
    filterable: tableOf(definition.filterable, filterFault),
    sortable: tableOf(definition.sortable, sortFault),
    places: isCode ? undefined : places,
    includes: definition.includes,
    hasGroups: true,
    hasSearch: true,
    counts: countModes,
    own: new Map(),
  };
}

function tableOfPlaces(
  places: ReadonlyMap<string, Shown>,
  definitions: Definitions,
  faultOf: typeof filterFault,
): PathTable {
  const paths = new Map<string, ShownPath>();
  const faults = new Map<string, string>();
  for (const [path, place] of places) {
    const { field, steps } = place;
    const fault = faultOf({ place });
    if (fault !== undefined) faults.set(path, fault);
    const isWay = field !== undefined && faultOf({ place, jsonPath: ["any"] }) === undefined;
    if (field === undefined || (fault !== undefined && !isWay)) continue;
    const links = steps.map(({ from, relation }) => linkOf(from, relation, definitions));
    paths.set(path, { path, links, field });
  }
  return { paths, faults };
}

function narrowed({ paths, faults }: PathTable, listed: readonly string[]): PathTable {
  const found = listed.flatMap((path) => findPath({ paths, faults: new Map() }, path) ?? []);
  const left = new Map(found.map((one) => [one.path, one]));
  const others = [...paths.keys()].filter((path) => !left.has(path) && !faults.has(path));
  return { paths: left, faults: new Map([...faults, ...others.map((path) => [path, ""] as const)]) };
}

/** Returns the target of a path in a parameter; undefined when the path is not allowed. */
export function findPath({ paths, faults }: PathTable, path: string): ShownPath | undefined {
  const found = findPlace(paths, path);
  if (found?.jsonPath === undefined) return faults.has(path) ? undefined : found?.place;
  const { place, jsonPath } = found;
  // A webhook's filter is stored as JSON, which cannot hold such a key.
  const isFine = place.jsonPath === undefined && textFault(path) === undefined;
  return isFine ? { ...place, path, jsonPath } : undefined;
}

/**
 * Returns the message for a path that is not allowed.
 *
 * @param includes Relations that the list may include.
 */
export function pathFault(
  table: PathTable,
  path: string,
  verb: "filtered" | "sorted",
  includes: readonly string[] = [],
): string {
  if (path === "") return "A path is missing.";
  const fault = table.faults.get(path);
  if (fault !== undefined)
    return `The field ${path} cannot be ${verb}${fault === "" ? "" : `: it is ${fault}`}.`;
  const names = [...table.paths.keys()].filter((name) => !table.faults.has(name));
  const added = includes.find((relation) => path.startsWith(`${relation}.`));
  return added === undefined || names.some((name) => name.startsWith(`${added}.`))
    ? unknownField(path, names)
    : `There is no field ${shortened(path)}: a list is filtered and sorted by what its records show without include.`;
}

/**
 * Returns the keys to a place of the JSON, or to a place within a `Json` value; undefined when it
 * is not shown.
 */
export function keysOf(places: ReadonlyMap<string, Shown>, path: string): readonly string[] | undefined {
  const found = findPlace(places, path);
  return found === undefined ? undefined : [...found.place.keys, ...(found.jsonPath ?? [])];
}
