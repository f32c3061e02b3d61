import type { CountMode } from "../mapping/definition.ts";
import { escapeValue } from "../querying/filter-values.ts";
import { operatorsOf, textOperators, type Operator } from "../querying/operators.ts";
import type { ListShape, PathTable, ShownPath } from "../querying/shown-paths.ts";
import { exampleOf } from "./examples.ts";
import { listOf, type JsonSchema } from "./json-schema.ts";
import { idParameter, type Parameter } from "./operation.ts";
import { askedSchema } from "./value-schemas.ts";

/** Parameters of one list only, by name: their schema and description. */
export type OwnParameters = Readonly<
  Record<string, { readonly schema: JsonSchema; readonly description: string }>
>;

/** The parameter `webhook_id` of lists of items of a subscription. */
export const ofWebhook: OwnParameters[string] = {
  schema: idParameter.schema,
  description: "Of this subscription.",
};

interface ListParametersOptions {
  readonly maxPerPage: number;
  /** Default of the parameter `count`. */
  readonly count?: CountMode;
  /** Schema and description of each of the shape's own parameters. */
  readonly own?: OwnParameters;
}

/** Returns the parameters of a list (docs/lists.md). */
export function listParameters(
  shape: ListShape,
  { maxPerPage, count, own = {} }: ListParametersOptions,
): readonly Parameter[] {
  return [
    ...pageParameters(maxPerPage),
    query("cursor", { type: "string" }, "A page by cursor: empty for the first one. Not with page or count."),
    query(
      "count",
      { type: "string", enum: shape.counts, ...(count !== undefined && { default: count }) },
      "Whether total is exact, estimated above 10,000, or left out.",
    ),
    ...(shape.hasSearch ? [query("search", { type: "string", maxLength: 100 }, "A part of a text.")] : []),
    ...[...shape.own.keys()].map((name) => ownParameter(name, own)),
    ...sortParameter(shape.sortable),
    fieldsParameter(shape),
    ...(shape.includes.length > 0 ? [includeParameter(shape.includes)] : []),
    ...allowedPaths(shape.filterable).flatMap(filterParameter),
  ];
}

/** Returns the parameters of a list with pages by cursor only, and parameters of its own. */
export function cursorParameters(
  shape: ListShape,
  { maxPerPage, own = {} }: ListParametersOptions,
): readonly Parameter[] {
  return [
    ...pageParameters(maxPerPage).filter(({ name }) => name !== "page"),
    query("cursor", { type: "string" }, "A page by cursor: empty, or left out, for the first one."),
    ...[...shape.own.keys()].map((name) => ownParameter(name, own)),
  ];
}

/** Returns the parameters of lists with pages only. */
export function pageParameters(maxPerPage: number): readonly Parameter[] {
  return [
    query(
      "page",
      { type: "integer", minimum: 1, default: 1 },
      "Anything but a whole number from 1 counts as 1.",
    ),
    query(
      "per_page",
      { type: "integer", minimum: 1, default: Math.min(15, maxPerPage) },
      `Records of a page. More than ${maxPerPage} counts as ${maxPerPage}.`,
    ),
  ];
}

/** Describes the features that no parameter can: groups, and paths within Json values. */
export function listRemarks(shape: ListShape): string {
  const short = "`filter[path]=value` is short for `filter[path][eq]=value`.";
  const groups = shape.hasGroups
    ? " Conditions go into groups as `filter[or][0][path][operator]=value`, `filter[and][0]…` and `filter[not]…`."
    : "";
  const within = [...shape.filterable.paths.values()]
    .filter(isJsonRoot)
    .map(({ path }) => `filter[${path}.key]`);
  const json = within.length > 0 ? ` Keys within Json values: ${within.join(", ")}.` : "";
  return allowedPaths(shape.filterable).length + within.length > 0 ? `${short}${groups}${json}` : "";
}

export function query(name: string, schema: JsonSchema, description: string): Parameter {
  return { name, in: "query", description, schema, ...(name === "cursor" && { allowEmptyValue: true }) };
}

function separated(name: string, schema: JsonSchema, description: string): Parameter {
  return { ...query(name, schema, description), style: "form", explode: false };
}

function ownParameter(name: string, own: OwnParameters): Parameter {
  const known = own[name];
  if (known === undefined) throw new Error(`The list parameter ${name} has no description for OpenAPI.`);
  return query(name, known.schema, known.description);
}

/** Returns whether a path is a whole Json value. Only its inner paths can be used. */
function isJsonRoot({ field, jsonPath }: ShownPath): boolean {
  return field.type === "Json" && !field.isList && jsonPath === undefined;
}

function allowedPaths({ paths, faults }: PathTable): readonly ShownPath[] {
  return [...paths.values()].filter((shown) => !faults.has(shown.path) && !isJsonRoot(shown));
}

function sortParameter(table: PathTable): readonly Parameter[] {
  const paths = allowedPaths(table).map(({ path }) => path);
  if (paths.length === 0) return [];
  const items = { type: "string", enum: paths.flatMap((path) => [path, `-${path}`]) };
  const description = "Paths to sort by, - before one for descending. Nulls come last.";
  return [separated("sort", listOf(items, { minItems: 1, maxItems: 5 }), description)];
}

function fieldsParameter({ places }: ListShape): Parameter {
  const known = places && [...places.keys()];
  const json = [...(places?.values() ?? [])].some(({ field }) => field?.type === "Json" && !field.isList);
  const isOpen = known === undefined || json;
  const path = { type: "string", pattern: "^[^,]+$" };
  const items = isOpen ? path : { type: "string", enum: known };
  const description = `Only these paths of each record.${
    isOpen && known !== undefined ? ` ${known.join(", ")}, and keys within Json values.` : ""
  }`;
  return separated("fields", listOf(items, { minItems: 1, maxItems: 100 }), description);
}

function includeParameter(includes: readonly string[]): Parameter {
  const schema = listOf({ type: "string", enum: includes }, { minItems: 1 });
  return separated("include", schema, "Relations to show with each record.");
}

/** Names of fields that take no operator in brackets, because the brackets would begin a group. */
const groupWords: readonly string[] = ["or", "and", "not"];

function filterParameter(shown: ShownPath): readonly Parameter[] {
  if (groupWords.includes(shown.path)) return [];
  const properties = operatorsOf(shown).map(
    (operator) => [operator, operandSchema(shown, operator)] as const,
  );
  const schema = { type: "object", properties: Object.fromEntries(properties), additionalProperties: false };
  // The example keeps API pages from making a request with every operator.
  return [
    { name: `filter[${shown.path}]`, in: "query", style: "deepObject", explode: true, schema, example: {} },
  ];
}

const ofSeveral: readonly Operator[] = ["eq", "in", "not_in", "between", "has_any", "has_all"];

function operandSchema(shown: ShownPath, operator: Operator): JsonSchema {
  if (operator === "null") return { type: "boolean" };
  if (textOperators.includes(operator)) return { type: "string" };
  const one = escaped(shown.jsonPath === undefined ? askedSchema(shown.field) : { type: "string" });
  const isOne = operator === "eq" && !operatorsOf(shown).includes("in");
  if (!ofSeveral.includes(operator) || isOne) return one;
  const description =
    operator === "between"
      ? "Two values with a comma between them; \\, is a comma in one."
      : "Values with commas between them; \\, is a comma in one.";
  const example = String(exampleOf(one, "text"));
  const several = {
    type: "string",
    description,
    examples: [operator === "between" ? `${example},${example}` : example],
  };
  return operator === "between" || one["type"] === "string" || operator.startsWith("has")
    ? several
    : { anyOf: [one, several] };
}

/** Escapes the values of a schema for a query string, in which commas separate values. */
function escaped(schema: JsonSchema): JsonSchema {
  const written = ["enum", "examples"].flatMap((key) => {
    const values = schema[key];
    return Array.isArray(values) ? [[key, values.map((value) => escapeValue(String(value)))] as const] : [];
  });
  return { ...schema, ...Object.fromEntries(written) };
}
