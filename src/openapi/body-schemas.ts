import { getOrSet } from "../kit/group-by.ts";
import type { Field } from "../mapping/definition.ts";
import { toPath } from "../validation/body-paths.ts";
import { parseRules, type ParsedRule, type RuleName, type RuleSpecs } from "../validation/syntax.ts";
import { listOf, nullable, type JsonSchema } from "./json-schema.ts";
import { alternativesOf, choicesOf, narrowed, rulesNotInSchema } from "./rule-schemas.ts";
import { sentAlternatives } from "./value-schemas.ts";

/** The rules of a body as the tree of its keys. */
interface Node {
  readonly rules: ParsedRule[];
  readonly children: Map<string, Node>;
}

/**
 * Returns the schema of a body, from its rules and from the columns of its values. Keys without
 * rules may be sent, and are not written.
 *
 * @param fields Fields of the resource; empty for a body of the service's own.
 */
export function bodySchema(specs: RuleSpecs, fields: readonly Field[]): JsonSchema {
  const root = emptyNode();
  for (const [key, spec] of Object.entries(specs)) {
    let node = root;
    for (const step of toPath(key)) node = getOrSet(node.children, step, emptyNode);
    node.rules.push(...parseRules(spec));
  }
  return objectSchema(root, (name) => fields.find((field) => field.name === name));
}

function emptyNode(): Node {
  return { rules: [], children: new Map() };
}

const excluding: ReadonlySet<RuleName> = new Set<RuleName>(["exclude", "missing", "prohibited"]);

function objectSchema({ children }: Node, fieldOf: (name: string) => Field | undefined): JsonSchema {
  const named = [...children].filter(
    ([name, { rules }]) => name !== "*" && !rules.some((rule) => excluding.has(rule.name)),
  );
  const required = named.filter(([, node]) => isRequired(node)).map(([name]) => name);
  return {
    type: "object",
    ...(required.length > 0 && { required }),
    properties: Object.fromEntries(named.map(([name, node]) => [name, valueSchema(node, fieldOf(name))])),
  };
}

function isRequired({ rules }: Node): boolean {
  const has = (name: RuleName): boolean => rules.some((rule) => rule.name === name);
  return !has("sometimes") && (has("required") || has("present"));
}

function valueSchema(node: Node, field: Field | undefined): JsonSchema {
  const { rules } = node;
  const ways = alternativesFor(node, field).map((schema) => withForm(schema, rules, field));
  const schemas = ways.map((schema) => withoutEmpty(narrowed(schema, rules), rules));
  const schema: JsonSchema = schemas.length === 1 ? (schemas[0] as JsonSchema) : { anyOf: schemas };
  const rest = rulesNotInSchema(rules);
  const described =
    rest.length === 0 || "$ref" in schema ? schema : { description: `Rules: ${rest.join(", ")}.`, ...schema };
  return rules.some(({ name }) => name === "nullable") ? nullable(described) : described;
}

/** Returns the schemas of all forms of the value. The rules decide, else the column. */
function alternativesFor({ rules, children }: Node, field: Field | undefined): readonly JsonSchema[] {
  const items = children.get("*");
  const below = objectSchema({ rules, children }, () => undefined);
  const hasKeys = [...children.keys()].some((name) => name !== "*");
  if (items !== undefined && !hasKeys) return [listOf(itemSchema(items, field))];
  if (hasKeys) return [below];
  if (field?.isList === true) return [listOf(itemSchema(emptyNode(), field))];
  const byRules = alternativesOf(rules);
  const byColumn = field && sentAlternatives(field);
  if (byRules === undefined) return byColumn ?? [choicesOf(rules) ?? {}];
  return byRules.map((way) => withColumn(way, byColumn ?? []));
}

function itemSchema(node: Node, field: Field | undefined): JsonSchema {
  return valueSchema(node, field && { ...field, isList: false });
}

/** Adds the limits of the column to a form that the rules allow. */
function withColumn(way: JsonSchema, byColumn: readonly JsonSchema[]): JsonSchema {
  const same = byColumn.find(({ type }) => type !== undefined && type === way["type"]);
  if (same === undefined) return way;
  // The rule `date` takes days too, and a column of days takes nothing else.
  const isDay = same["format"] === "date" && way["format"] === "date-time";
  return { ...same, ...way, ...(isDay && { format: "date" }) };
}

/** Removes the format of the column where `date_format` requires another one. */
function withForm(schema: JsonSchema, rules: readonly ParsedRule[], field: Field | undefined): JsonSchema {
  const asked = rules.find(({ name }) => name === "date_format")?.args;
  if (asked === undefined || (field?.type === "Date" && String(asked) === "Y-m-d")) return schema;
  const { format: _other, ...free } = schema;
  return free;
}

/**
 * Requires a character of a required text, and an item of a required list (Laravel's `required`). A
 * blank text becomes null, which the rule `string` refuses without `nullable`.
 */
function withoutEmpty(schema: JsonSchema, rules: readonly ParsedRule[]): JsonSchema {
  const has = (rule: RuleName): boolean => rules.some(({ name }) => name === rule);
  const isFilled = has("required") || has("filled") || (has("string") && !has("nullable"));
  if (!isFilled || schema["enum"] !== undefined) return schema;
  if (schema["type"] === "string")
    return schema["pattern"] === undefined ? { minLength: 1, ...schema } : schema;
  if (schema["type"] === "array") return { minItems: 1, ...schema };
  if (schema["type"] === "object") return { minProperties: 1, ...schema };
  return schema;
}
