import type { Definition, Field, FieldType } from "../mapping/definition.ts";
import { defaultLength } from "../mapping/storable.ts";
import { listOf, nullable, type JsonSchema } from "./json-schema.ts";

type SchemaOf = (field: Field) => JsonSchema;

export const dateTime: JsonSchema = { type: "string", format: "date-time" };
export const uuid: JsonSchema = { type: "string", format: "uuid" };
const date: JsonSchema = { type: "string", format: "date" };
/** Not the format `time`, which has an offset. */
const time: JsonSchema = { type: "string", pattern: "^\\d\\d:\\d\\d(:\\d\\d(\\.\\d{1,6})?)?$" };
/** Not the format `duration`, which has no signs and fractions. */
const interval: JsonSchema = { type: "string", pattern: "^P" };
export const int32: JsonSchema = { type: "integer", minimum: -(2 ** 31), maximum: 2 ** 31 - 1 };

/** The texts that the rules `integer` and `numeric` take; blanks around them are trimmed. */
export const integerText: JsonSchema = { type: "string", pattern: "^\\s*[+-]?(0|[1-9][0-9]*)\\s*$" };
export const numberText: JsonSchema = {
  type: "string",
  pattern: "^\\s*[+-]?([0-9]+(\\.[0-9]*)?|\\.[0-9]+)([eE][+-]?[0-9]+)?\\s*$",
};

/** Values as answers and webhooks show them (docs/api.md, "Values"). */
const shown: Readonly<Record<FieldType, SchemaOf>> = {
  Int: () => ({ type: "integer" }),
  BigInt: () => ({
    type: ["integer", "string"],
    description: "A text where a JSON number would lose digits.",
  }),
  Float: () => ({ type: "number" }),
  Decimal: () => ({ type: "string", format: "decimal" }),
  String: () => ({ type: "string" }),
  Boolean: () => ({ type: "boolean" }),
  DateTime: () => dateTime,
  Date: () => date,
  Time: () => time,
  Interval: () => interval,
  Json: () => ({}),
  Bytes: () => ({ type: "string", contentEncoding: "base64" }),
  Uuid: () => uuid,
  Enum: ({ values = [] }) => ({ type: "string", enum: values }),
};

/**
 * Returns the schema of a field in answers.
 *
 * @param isManaged Whether the table is the service's own. Others may hold what has no place in
 *   JSON, such as NaN and infinite dates, which are shown as null.
 */
export function shownSchema(field: Field, { isManaged }: { readonly isManaged: boolean }): JsonSchema {
  const one = shown[field.type](field);
  const mayLack = !isManaged && ["Float", "DateTime", "Date"].includes(field.type);
  if (field.isList) return nullableIf(field.isOptional, listOf(isManaged ? one : nullable(one)));
  return nullableIf(field.isOptional || mayLack, one);
}

function nullableIf(isNullable: boolean, schema: JsonSchema): JsonSchema {
  return isNullable ? nullable(schema) : schema;
}

/** Each way in which a body may write a value; what both rules and column allow is among them. */
export const sentAlternatives: Readonly<Record<FieldType, (field: Field) => readonly JsonSchema[]>> = {
  Int: () => [int32, integerText],
  BigInt: () => [{ type: "integer" }, integerText],
  Float: () => [{ type: "number" }, numberText],
  Decimal: () => [{ type: "number" }, numberText],
  String: ({ length = defaultLength }) => [{ type: "string", maxLength: length }],
  Boolean: () => [{ enum: [true, false, 0, 1, "0", "1"] }],
  DateTime: () => [dateTime],
  Date: () => [date],
  Time: () => [time],
  Interval: () => [interval],
  Json: () => [{}],
  Bytes: () => [{ type: "string", contentEncoding: "base64" }],
  Uuid: () => [uuid],
  Enum: ({ values = [] }) => [{ type: "string", enum: values }],
};

/** One value of a condition, as a query string has it (docs/lists.md, "Operators"). */
export const askedSchemas: Readonly<Record<FieldType, SchemaOf>> = {
  Int: () => int32,
  BigInt: () => ({ type: "integer" }),
  Float: () => ({ type: "number" }),
  Decimal: () => ({ type: "number" }),
  String: () => ({ type: "string" }),
  Boolean: () => ({ type: "boolean" }),
  DateTime: () => dateTime,
  Date: () => date,
  Time: () => time,
  Interval: () => interval,
  Json: () => ({ type: "string" }),
  Bytes: () => ({ type: "string" }),
  Uuid: () => uuid,
  Enum: ({ values = [] }) => ({ type: "string", enum: values }),
};

/** The id of a record, in a path and in a batch. */
export function idSchema({ key, keys }: Pick<Definition, "key" | "keys">): JsonSchema {
  const schema = askedSchemas[key.type](key);
  if (keys.length > 1)
    return {
      type: "string",
      pattern: `^[^,]+(,[^,]+){${keys.length - 1}}$`,
      description: `The values of ${keys.map(({ name }) => name).join(", ")}, each percent-encoded, with commas between them.`,
      examples: [keys.map((field) => exampleOfKey(field)).join(",")],
    };
  return schema["type"] === "string" && schema["format"] === undefined ? { ...schema, minLength: 1 } : schema;
}

function exampleOfKey({ type, values = [] }: Field): string {
  if (type === "Date") return "2026-03-28";
  if (type === "Uuid") return "3f2504e0-4f89-41d3-9a0c-0305e82c3301";
  if (type === "Enum") return encodeURIComponent(values[0] ?? "");
  return type === "String" ? "a" : "1";
}
