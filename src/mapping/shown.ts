import type { Definition, Definitions, Field, Relation, TransformNode } from "./definition.ts";
import { isUniqueAlone } from "./keys.ts";
import { hasOrder } from "./native.ts";

/** A relation on the way to a field, with the resources at its ends. */
export interface Step {
  readonly from: Definition;
  readonly relation: Relation;
  readonly to: Definition;
}

/** A place in the JSON of a record. */
export interface Shown {
  /** Keys from the record down to the place, without those of lists. */
  readonly keys: readonly string[];
  readonly steps: readonly Step[];
  /** The field of the place; undefined without one, or when it cannot be reached. */
  readonly field?: Field;
  /** Content of the place without a field, to complete "x is ...". */
  readonly instead?: string;
}

/** `include` of the base query. "any": a code module decides what it includes. */
export type Included = Readonly<Record<string, unknown>> | undefined | "any";

/** Returns the `include` of the base query, as far as it is known before a request. */
export function includedBy({ code, baseQuery }: Definition): Included {
  return code.baseQuery === undefined ? baseQuery.include : "any";
}

/**
 * Lists every place of a record's JSON that the key `transform` makes. The places of a `transform`
 * in code are unknown: the list then has the fields under their own names.
 *
 * @param definitions Definitions without those of faulty resources. Places in such a resource are
 *   marked as unknown.
 * @returns The places by their keys with dots between; the first of two places with the same keys.
 */
export function shownPlaces(
  definition: Definition,
  definitions: Definitions,
  included: Included,
): ReadonlyMap<string, Shown> {
  const places =
    definition.transform === undefined || definition.code.transform !== undefined
      ? placesOfFields(definition, { keys: [], steps: [] })
      : placesOfNode(definition.transform, { definition, definitions, included, keys: [] });
  const byPath = new Map<string, Shown>();
  for (const place of places) {
    const path = place.keys.join(".");
    if (path !== "" && !byPath.has(path)) byPath.set(path, place);
  }
  return byPath;
}

interface Place {
  readonly definition: Definition;
  readonly definitions: Definitions;
  readonly included: Included;
  readonly keys: readonly string[];
}

function placesOfNode(node: TransformNode, place: Place): readonly Shown[] {
  const { keys, definition } = place;
  if (node.kind === "value") return [{ keys, steps: [], instead: "a constant" }];
  if (node.kind === "path") return placesOfPath(node.path, { ...place, here: definition, steps: [] });
  const inner = node.entries.flatMap(([key, child]) =>
    placesOfNode(child, { ...place, keys: [...keys, key] }),
  );
  return [{ keys, steps: [], instead: "an object" }, ...inner];
}

function placesOfFields(
  { fields }: Definition,
  { keys, steps }: Pick<Shown, "keys" | "steps">,
): readonly Shown[] {
  return fields.map((field) => ({ keys: [...keys, field.name], steps, field }));
}

function placesOfPath(
  [name = "", ...rest]: readonly string[],
  place: Place & { readonly here: Definition; readonly steps: readonly Step[] },
): readonly Shown[] {
  const { here, definitions, included, keys, steps } = place;
  const field = here.fields.find((candidate) => candidate.name === name);
  if (field !== undefined && rest.length === 0) return [{ keys, steps, field }];
  const relation = here.relations.find((candidate) => candidate.name === name);
  const to = relation === undefined ? undefined : definitions.get(relation.resource);
  if (relation === undefined || to === undefined) return [{ keys, steps, instead: unknown }];
  const next = includedAt(included, name);
  if (next === "hidden") return [{ keys, steps, instead: `what \`include\` of \`baseQuery\` leaves out` }];
  const beyond = { ...place, here: to, included: next, steps: [...steps, { from: here, relation, to }] };
  if (rest.length > 0) return placesOfPath(rest, beyond);
  return [{ keys, steps, instead: "an object" }, ...placesOfFields(to, beyond)];
}

/** The value of `instead` where a fault elsewhere hides the content of a place. */
export const unknown = "unknown";

/**
 * Returns the included relations below a relation. A relation that is not included appears as null.
 * A partly included relation (`where`, `take`, `skip`) is hidden, since a filter would reveal the
 * other records.
 */
function includedAt(included: Included, name: string): Included | "hidden" {
  if (included === "any") return "any";
  const value = included?.[name];
  if (value === true) return undefined;
  if (typeof value !== "object" || value === null) return "hidden";
  const { include, orderBy: _, ...parts } = value as Readonly<Record<string, unknown>>;
  return Object.keys(parts).length > 0 ? "hidden" : (include as Included);
}

/** Returns whether the other end may have several records: a unique field there allows only one. */
export function leadsToMany(relation: Relation, to: Definition): boolean {
  const field = to.fields.find(({ name }) => name === relation.foreignField);
  return relation.kind === "many" && (field === undefined || !isUniqueAlone(field, to));
}

/** A requested place, and the keys below it inside a Json field. */
export interface Found<P = Shown> {
  readonly place: P;
  readonly jsonPath?: readonly string[];
}

/**
 * Limit in characters. Keeps hostile input away from the search for a `Json` field, whose time
 * grows with the square of the length.
 */
export const longestPath = 1000;

/**
 * Returns the place of a path, or the `Json` field above it with the rest of the path. Returns
 * undefined when both are missing.
 */
export function findPlace<P extends Pick<Shown, "field">>(
  places: ReadonlyMap<string, P>,
  path: string,
): Found<P> | undefined {
  if (path.length > longestPath) return undefined;
  const exact = places.get(path);
  if (exact !== undefined) return { place: exact };
  for (let end = path.indexOf("."); end !== -1; end = path.indexOf(".", end + 1)) {
    const place = places.get(path.slice(0, end));
    if (place?.field?.type !== "Json" || place.field.isList) continue;
    const jsonPath = path.slice(end + 1).split(".");
    return jsonPath.includes("") ? undefined : { place, jsonPath };
  }
  return undefined;
}

/**
 * Returns the reason why a place cannot be filtered, to complete "x is ..."; undefined when it can.
 */
export function filterFault({ place: { field, instead }, jsonPath }: Found): string | undefined {
  if (field === undefined) return instead ?? unknown;
  if (field.type === "Bytes") return "of type Bytes";
  if (field.type !== "Json") return undefined;
  if (field.isList) return "a list of Json";
  return jsonPath === undefined ? "a whole Json value; expected a path in it" : undefined;
}

/**
 * Returns the reason why a place cannot be sorted, to complete "x is ..."; undefined when it can.
 */
export function sortFault({ place, jsonPath }: Found): string | undefined {
  const { field, steps } = place;
  if (jsonPath !== undefined) return "a part of a Json value, which has no order";
  const fault = filterFault({ place });
  if (field?.type === "Json" && !field.isList) return "a Json value, which has no order";
  if (fault !== undefined) return fault;
  if (field?.isList === true) return "a list";
  if (field !== undefined && !hasOrder(field))
    return `of the native type ${field.native}, which has no order`;
  return steps.some(({ relation, to }) => leadsToMany(relation, to)) ? "that of several records" : undefined;
}
