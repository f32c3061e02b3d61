import type { ParsedRule, RuleName } from "../validation/syntax.ts";
import type { JsonSchema } from "./json-schema.ts";
import { dateTime, integerText, numberText, uuid } from "./value-schemas.ts";

/** Forms of a value by the rules on types. Rules for texts of a certain form only give the type. */
const alternatives: Partial<Readonly<Record<RuleName, (args: readonly string[]) => readonly JsonSchema[]>>> =
  {
    integer: ([mode]) => withText(mode, { type: "integer" }, integerText),
    numeric: ([mode]) => withText(mode, { type: "number" }, numberText),
    decimal: () => [{ type: "number" }, numberText],
    boolean: ([mode]) =>
      mode === "strict" ? [{ type: "boolean" }] : [{ enum: [true, false, 0, 1, "0", "1"] }],
    accepted: () => [{ enum: [true, 1, "1", "yes", "on", "true"] }],
    declined: () => [{ enum: [false, 0, "0", "no", "off", "false"] }],
    list: () => [{ type: "array" }],
    array: () => [{ type: "array" }, { type: "object" }],
    email: () => [{ type: "string", format: "email" }],
    url: () => [{ type: "string", format: "uri" }],
    uuid: () => [uuid],
    ipv4: () => [{ type: "string", format: "ipv4" }],
    ipv6: () => [{ type: "string", format: "ipv6" }],
    ip: () => [
      { type: "string", format: "ipv4" },
      { type: "string", format: "ipv6" },
    ],
    date: () => [dateTime],
    hex_color: () => [{ type: "string", pattern: "^#([0-9a-fA-F]{3,4}|[0-9a-fA-F]{6}|[0-9a-fA-F]{8})$" }],
    base64: () => [{ type: "string", contentEncoding: "base64" }],
    json: () => [{ type: "string", contentMediaType: "application/json" }],
    string: () => [{ type: "string" }],
  };

/** Rules on types, the most specific ones first: the first one of a field decides. */
const typeRules = Object.keys(alternatives) as readonly RuleName[];

function withText(mode: string | undefined, number: JsonSchema, text: JsonSchema): readonly JsonSchema[] {
  return mode === "strict" ? [number] : [number, text];
}

/** Returns the forms of a value that the rules allow; undefined without a rule on types. */
export function alternativesOf(rules: readonly ParsedRule[]): readonly JsonSchema[] | undefined {
  const found = typeRules.flatMap((name) => rules.filter((rule) => rule.name === name))[0];
  return found && alternatives[found.name]?.(found.args);
}

/** Returns the values that the rules list; undefined without a list. */
export function choicesOf(rules: readonly ParsedRule[]): JsonSchema | undefined {
  const choice = rules.find(({ name }) => name === "in" || name === "enum");
  return choice && { type: "string", enum: choice.args };
}

type Limits = (args: readonly number[]) => {
  readonly least?: number | undefined;
  readonly most?: number | undefined;
  readonly isOpen?: boolean;
};

const limits: Partial<Readonly<Record<RuleName, Limits>>> = {
  min: ([least]) => ({ least }),
  max: ([most]) => ({ most }),
  between: ([least, most]) => ({ least, most }),
  size: ([size]) => ({ least: size, most: size }),
  gte: ([least]) => ({ least }),
  lte: ([most]) => ({ most }),
  gt: ([least]) => ({ least, isOpen: true }),
  lt: ([most]) => ({ most, isOpen: true }),
};

/** Narrows one form of a value by the rules on its size, its choices and its pattern. */
export function narrowed(schema: JsonSchema, rules: readonly ParsedRule[]): JsonSchema {
  let result = schema;
  for (const { name, args } of rules) {
    const numbers = args.map(Number);
    const limit = numbers.some(Number.isNaN) ? undefined : limits[name]?.(numbers);
    if (limit !== undefined) result = withLimit(result, limit, rules);
    if (name === "in" || name === "enum") result = withChoice(result, args);
    if (name === "regex") result = withPattern(result, args[0] ?? "");
  }
  return result;
}

const numericRules: ReadonlySet<RuleName> = new Set<RuleName>(["integer", "numeric", "decimal"]);

/**
 * Adds a limit. It applies to a number only where a rule makes the value a number, as in Laravel.
 */
function withLimit(
  schema: JsonSchema,
  { least, most, isOpen = false }: ReturnType<Limits>,
  rules: readonly ParsedRule[],
): JsonSchema {
  const { type } = schema;
  const isNumeric = rules.some(({ name }) => numericRules.has(name));
  if ((type === "integer" || type === "number") && isNumeric)
    return isOpen
      ? bounded(schema, ["exclusiveMinimum", least], ["exclusiveMaximum", most])
      : bounded(schema, ["minimum", least], ["maximum", most]);
  // Lengths are whole numbers, so an open bound becomes the next one.
  const from = least === undefined ? undefined : isOpen ? least + 1 : least;
  const to = most === undefined ? undefined : isOpen ? most - 1 : most;
  if (type === "string" && !isNumeric) return bounded(schema, ["minLength", from], ["maxLength", to]);
  if (type === "array") return bounded(schema, ["minItems", from], ["maxItems", to]);
  if (type === "object") return bounded(schema, ["minProperties", from], ["maxProperties", to]);
  return schema;
}

/** Keeps the narrower of two bounds. */
function bounded(
  schema: JsonSchema,
  ...bounds: readonly (readonly [string, number | undefined])[]
): JsonSchema {
  const entries = bounds.flatMap(([key, value]) => {
    if (value === undefined) return [];
    const there = schema[key];
    if (typeof there !== "number") return [[key, value]];
    return [[key, /min/i.test(key) ? Math.max(there, value) : Math.min(there, value)]];
  });
  return { ...schema, ...(Object.fromEntries(entries) as JsonSchema) };
}

function withChoice(schema: JsonSchema, values: readonly string[]): JsonSchema {
  const { type } = schema;
  if (type === "string") return { type, enum: values };
  const numbers = values.map(Number);
  if ((type === "integer" || type === "number") && !numbers.some(Number.isNaN))
    return { type, enum: numbers };
  return schema;
}

/** Adds a pattern without flags, because JSON Schema has no flags. */
function withPattern(schema: JsonSchema, written: string): JsonSchema {
  const [, source] = /^\/([^]*)\/u?$/.exec(written) ?? [];
  return schema["type"] === "string" && source !== undefined && schema["pattern"] === undefined
    ? { ...schema, pattern: source }
    : schema;
}

/** Rules that the schema already contains, or that only affect the order of checks. */
const said: ReadonlySet<RuleName> = new Set<RuleName>([
  ...typeRules,
  ...(Object.keys(limits) as RuleName[]),
  "in",
  "enum",
  "regex",
  "bail",
  "nullable",
  "sometimes",
  "required",
  "present",
]);

/**
 * Returns the names of the rules that a schema cannot express. Leaves out their arguments, which
 * may be names of tables.
 */
export function rulesNotInSchema(rules: readonly ParsedRule[]): readonly string[] {
  return [...new Set(rules.map(({ name }) => name).filter((name) => !said.has(name)))];
}
