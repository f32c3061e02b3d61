import { pageOf, searchFault, type Page } from "../http/page.ts";
import { readingFault, readQuery, type QueryParameter } from "../http/query-string.ts";
import { unknownParameter } from "../http/unknown-parameter.ts";
import { shortened, suggestionFor } from "../kit/did-you-mean.ts";
import { validationError } from "../kit/errors.ts";
import type { CountMode } from "../mapping/definition.ts";
import type { Condition } from "./condition.ts";
import { conditionOf, createGroup, isFilter, mostConditions, readFilter } from "./filters.ts";
import type { OrderItem } from "./order.ts";
import { fieldFault } from "./projection.ts";
import { findPath, pathFault, type ListShape, type PathTable } from "./shown-paths.ts";

/** The requested part of a list. */
export type Paging =
  | ({ readonly kind: "page" } & Page)
  /** `cursor` is empty for the first page. */
  | { readonly kind: "cursor"; readonly cursor: string; readonly perPage: number };

/** The parameters of a request for a list. */
export interface ListParameters {
  readonly filter: Condition;
  /** Undefined: the default order of the list. The key is not added. */
  readonly sort: readonly OrderItem[] | undefined;
  /** Paths of the record's JSON, for `createProjection`; undefined: all. */
  readonly fields: readonly string[] | undefined;
  /** Names of relations. */
  readonly include: readonly string[];
  readonly paging: Paging;
  /** Undefined: the default count of the list. */
  readonly count: CountMode | undefined;
  readonly search: string | undefined;
  /** Every given parameter; the last value of a repeated one. */
  readonly given: ReadonlyMap<string, string>;
}

const mostSorted = 5;
const mostFields = 100;
/** Limit of the faults in one parameter, so that the answer stays short. */
const mostFieldFaults = 10;

const common = ["filter", "sort", "fields", "include", "cursor", "count", "page", "per_page"];

/** Messages by the parameter as it was written. */
type Faults = Map<string, string[]>;

/**
 * Reads the query string of a list.
 *
 * @param query Query string without the question mark.
 * @throws AppError `validation.failed` with all faults, by the parameter as it was written.
 */
export function readListParameters(
  query: string,
  shape: ListShape,
  { maxPerPage }: { readonly maxPerPage: number },
): ListParameters {
  const parameters = readQuery(query);
  const faults: Faults = new Map();
  const given = readGiven(parameters, shape, faults);
  const filter = readFilters(given, shape, faults);
  const sort = readSort(given.get("sort"), shape, faults);
  const fields = readFields(given.get("fields"), shape, faults);
  const include = readInclude(given.get("include"), shape, faults);
  const count = readCount(given.get("count"), shape, faults);
  for (const [name, faultOf] of shape.own) {
    const value = given.get(name);
    addFault(faults, name, value === undefined ? undefined : faultOf(value));
  }
  const search = given.get("search");
  addFault(faults, "search", search === undefined ? undefined : searchFault(search));
  checkCursor(given, faults);
  if (faults.size > 0) throw validationError(Object.fromEntries(faults));
  const page = pageOf(given, maxPerPage);
  const cursor = given.get("cursor");
  const paging: Paging =
    cursor === undefined ? { kind: "page", ...page } : { kind: "cursor", cursor, perPage: page.perPage };
  return { filter, sort, fields, include, paging, count, search, given };
}

function addFault(faults: Faults, name: string, fault: string | undefined): void {
  if (fault !== undefined) faults.set(name, [...(faults.get(name) ?? []), fault]);
}

/** Refuses parameters that are unknown, given twice or cannot be decoded. */
function readGiven(
  parameters: readonly QueryParameter[],
  { hasSearch, own, includes, filterable }: ListShape,
  faults: Faults,
): ReadonlyMap<string, string> {
  const names = [...common, ...(hasSearch ? ["search"] : []), ...own.keys()];
  // `include` is read for every list, so that a list without relations can refuse it.
  const suggested = names.filter((name) => name !== "include" || includes.length > 0);
  const given = new Map<string, string>();
  for (const parameter of parameters) {
    const { name, value } = parameter;
    const fault = readingFault(parameter, given);
    if (name === "") addFault(faults, name, "A parameter has no name.");
    else if (!isFilter(name) && !names.includes(name))
      addFault(faults, name, filterHint(name, filterable) ?? unknownParameter(name, suggested));
    else if (fault !== undefined) addFault(faults, name, fault);
    else given.set(name, value);
  }
  return given;
}

/** Returns the message for a filter in the form of other APIs: `status=open`, `amount[gte]=5`. */
function filterHint(name: string, filterable: PathTable): string | undefined {
  const [path = ""] = name.split("[", 1);
  const start = `There is no parameter ${shortened(name)}`;
  if (filterable.faults.has(path)) return `${start}. ${pathFault(filterable, path, "filtered")}`;
  if (findPath(filterable, path) === undefined) return undefined;
  return `${start}; a filter is written as ${shortened(`filter[${path}]${name.slice(path.length)}`)}.`;
}

function readFilters(given: ReadonlyMap<string, string>, shape: ListShape, faults: Faults): Condition {
  const root = createGroup("all");
  const filters = [...given].filter(([name]) => isFilter(name));
  const [oneTooMany] = filters[mostConditions] ?? [];
  if (oneTooMany !== undefined)
    addFault(faults, oneTooMany, `A request may have at most ${mostConditions} conditions.`);
  for (const [name, value] of filters) addFault(faults, name, readFilter(root, name, value, shape));
  return conditionOf(root);
}

function readSort(
  text: string | undefined,
  { sortable, includes }: ListShape,
  faults: Faults,
): readonly OrderItem[] | undefined {
  if (text === undefined) return undefined;
  const names = text.split(",", mostSorted + 1);
  if (names.length > mostSorted)
    addFault(faults, "sort", `A list is sorted by at most ${mostSorted} fields.`);
  const paths = names.slice(0, mostSorted).map((name) => (name.startsWith("-") ? name.slice(1) : name));
  return paths.flatMap((path, index): readonly OrderItem[] => {
    const shown = findPath(sortable, path);
    if (shown === undefined)
      addFault(
        faults,
        "sort",
        directionFault(path, sortable) ?? pathFault(sortable, path, "sorted", includes),
      );
    else if (paths.indexOf(path) < index) addFault(faults, "sort", `The field ${path} is in it twice.`);
    if (shown === undefined) return [];
    const { links, field } = shown;
    const direction = names[index] === path ? "asc" : "desc";
    return [{ links, field, direction, nulls: "last" }];
  });
}

/** Returns the message for a direction in the form of other APIs, such as `created_at.desc`. */
function directionFault(text: string, sortable: PathTable): string | undefined {
  const end = text.toLowerCase().endsWith("desc") ? "desc" : "asc";
  const path = text.slice(0, -end.length - 1);
  if (!text.toLowerCase().endsWith(end) || findPath(sortable, path) === undefined) return undefined;
  return `The field ${path} is written as ${end === "asc" ? path : `-${path}`} to sort in that direction.`;
}

function readFields(
  text: string | undefined,
  { places }: ListShape,
  faults: Faults,
): readonly string[] | undefined {
  const paths = text?.split(",", mostFields + 1);
  if (paths !== undefined && paths.length > mostFields)
    addFault(faults, "fields", `A request may name at most ${mostFields} fields.`);
  let found = 0;
  for (const path of new Set(paths)) {
    const fault = path === "" ? "A path is missing." : fieldFault(path, places);
    addFault(faults, "fields", fault);
    if (fault !== undefined) found += 1;
    if (found === mostFieldFaults) break;
  }
  return paths;
}

function readInclude(text: string | undefined, { includes }: ListShape, faults: Faults): readonly string[] {
  const names = new Set(text?.split(","));
  const unknown = [...names].filter((name) => !includes.includes(name));
  for (const name of unknown.slice(0, mostFieldFaults))
    addFault(faults, "include", includeFault(name, includes));
  return [...names];
}

function includeFault(name: string, includes: readonly string[]): string {
  if (name === "") return "A name is missing.";
  return `There is no relation ${shortened(name)} to include${suggestionFor(name, includes)}`;
}

function readCount(text: string | undefined, { counts }: ListShape, faults: Faults): CountMode | undefined {
  const mode = counts.find((one) => one === text);
  if (text !== undefined && mode === undefined)
    addFault(faults, "count", `The value of count must be one of ${counts.join(", ")}.`);
  return mode;
}

/**
 * Refuses `page` and `count` with a cursor, because pages by cursor have no number and no total.
 */
function checkCursor(given: ReadonlyMap<string, string>, faults: Faults): void {
  if (!given.has("cursor")) return;
  if (given.has("page")) addFault(faults, "page", "There is no page beside cursor.");
  const count = given.get("count");
  if (count !== undefined && count !== "none") addFault(faults, "count", "There is no count beside cursor.");
}
