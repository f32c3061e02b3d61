import type { Definition, Field, FieldType } from "../mapping/definition.ts";
import { defaultLength } from "../mapping/storable.ts";
import type { ListShape } from "../querying/shown-paths.ts";
import { exampleOf } from "./examples.ts";
import { listOf, nullable, type JsonSchema } from "./json-schema.ts";

type SchemaOf = (field: Field) => JsonSchema;

export const text: JsonSchema = { type: "string" };
/** The schema of a count. */
export const whole: JsonSchema = { type: "integer", minimum: 0 };
/** Id of a row of the service's own. */
export const rowId: JsonSchema = { type: "integer", minimum: 1 };
export const dateTime: JsonSchema = { type: "string", format: "date-time" };
export const uuid: JsonSchema = { type: "string", format: "uuid" };
const date: JsonSchema = { type: "string", format: "date" };
/** Schema of a time. Has no format: the format `time` requires an offset. */
const time: JsonSchema = {
  type: "string",
  pattern: "^\\d\\d:\\d\\d(:\\d\\d(\\.\\d{1,6})?)?$",
  examples: ["14:30:00"],
};
/** Schema of an interval. Has no format: the format `duration` has no signs and fractions. */
const interval: JsonSchema = { type: "string", pattern: "^P", examples: ["P1DT12H"] };
const int32: JsonSchema = { type: "integer", minimum: -(2 ** 31), maximum: 2 ** 31 - 1 };

/** Texts that the rules `integer` and `numeric` accept; blanks around them are trimmed. */
export const integerText: JsonSchema = { type: "string", pattern: "^\\s*[+-]?(0|[1-9][0-9]*)\\s*$" };
export const numberText: JsonSchema = {
  type: "string",
  pattern: "^\\s*[+-]?([0-9]+(\\.[0-9]*)?|\\.[0-9]+)([eE][+-]?[0-9]+)?\\s*$",
};

/** Example texts of native types, by the type without its arguments. */
const nativeExamples = new Map(
  Object.entries({
    inet: "192.0.2.1",
    cidr: "192.0.2.0/24",
    macaddr: "08:00:2b:01:02:03",
    macaddr8: "08:00:2b:01:02:03:04:05",
    money: "1.50",
    timetz: "14:30:00+00",
    oid: "1",
    xid: "1",
    xid8: "1",
    pg_lsn: "0/1",
    pg_snapshot: "10:20:10",
    varbit: "101",
    point: "(1,2)",
    line: "{1,2,3}",
    lseg: "[(0,0),(1,1)]",
    box: "(1,1),(0,0)",
    path: "((0,0),(1,1))",
    polygon: "((0,0),(1,1),(2,0))",
    circle: "<(1,1),2>",
    xml: "<a/>",
    jsonpath: "$.a",
    hstore: '"a"=>"1"',
    ltree: "a.b",
    lquery: "a.*",
    cube: "(1, 2)",
    seg: "1",
    regclass: "pg_class",
    int4range: "[1,5)",
    int8range: "[1,5)",
    numrange: "[1.5,2)",
    daterange: "[2026-03-28,2026-04-01)",
    tsrange: "[2026-03-28 14:30:00,2026-03-28 15:30:00)",
    tstzrange: "[2026-03-28 14:30:00+00,2026-03-28 15:30:00+00)",
    int4multirange: "{[1,5)}",
    int8multirange: "{[1,5)}",
    nummultirange: "{[1.5,2)}",
    datemultirange: "{[2026-03-28,2026-04-01)}",
    tsmultirange: "{}",
    tstzmultirange: "{}",
    tsvector: "'ada'",
    tsquery: "'ada'",
  }),
);

function nativeExample(native: string): string | undefined {
  const [, type = "", length = "1"] = /^([^(]*)(?:\((\d+)\))?/.exec(native) ?? [];
  return type === "bit" ? "0".repeat(Number(length)) : nativeExamples.get(type);
}

/** Returns the schema of a text, with an example where a native type accepts only some texts. */
function textSchema({ native }: Field): JsonSchema {
  const example = native === undefined ? undefined : nativeExample(native);
  return { type: "string", ...(example !== undefined && { examples: [example] }) };
}

/**
 * Returns the schema of numbers that fit the digits of the column, as far as JSON numbers can
 * express them.
 */
function decimalSchema({ precision, scale = 0 }: Field): JsonSchema {
  if (precision === undefined || precision > 15) return { type: "number" };
  const maximum = Number((10 ** (precision - scale) - 10 ** -scale).toFixed(scale));
  return { type: "number", minimum: -maximum, maximum };
}

/**
 * Times that an existing table may contain: infinities, years before 1, and years of five to
 * seven digits.
 */
const beyond: JsonSchema = { type: "string", pattern: "infinity$| BC$|^[0-9]{5,7}-" };

/** Schemas of values in answers and webhooks (docs/api.md, "Values"). */
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
  Instant: () => dateTime,
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
 * @param isManaged Whether the table is the service's own. Others may contain values without a form
 *   in JSON, such as NaN, which are shown as null.
 */
export function shownSchema(field: Field, { isManaged }: { readonly isManaged: boolean }): JsonSchema {
  const usual = shown[field.type](field);
  const isTime = ["Instant", "DateTime", "Date"].includes(field.type);
  const one = isTime && !isManaged ? { anyOf: [usual, beyond] } : usual;
  const mayLack = field.isNullable === true || (!isManaged && field.type === "Float");
  if (field.isList) return nullableIf(field.isOptional, listOf(isManaged ? one : nullable(one)));
  return nullableIf(field.isOptional || mayLack, one);
}

/** Returns the schemas of the keys of one of the service's own lists. */
export function keySchemas({ places }: ListShape): Readonly<Record<string, JsonSchema>> {
  const schemas = [...(places ?? [])].map(
    ([name, { field }]) =>
      [name, field === undefined ? {} : shownSchema(field, { isManaged: true })] as const,
  );
  return Object.fromEntries(schemas);
}

function nullableIf(isNullable: boolean, schema: JsonSchema): JsonSchema {
  return isNullable ? nullable(schema) : schema;
}

/** Schemas of the forms in which a body may write a value, where they differ from answers. */
const sent: Partial<Record<FieldType, (field: Field) => readonly JsonSchema[]>> = {
  Int: () => [int32, integerText],
  BigInt: () => [{ type: "integer" }, integerText],
  Float: () => [{ type: "number" }, numberText],
  Decimal: (field) => [decimalSchema(field), numberText],
  String: (field) => [{ ...textSchema(field), maxLength: field.length ?? defaultLength }],
  Boolean: () => [{ enum: [true, false, 0, 1, "0", "1"] }],
};

/**
 * Returns the schemas of all forms in which a body may write a value. They include the forms that
 * both rules and column allow.
 */
export function sentAlternatives(field: Field): readonly JsonSchema[] {
  return sent[field.type]?.(field) ?? [shown[field.type](field)];
}

/** Schemas of the types whose form in a query string differs from answers. */
const asked: Partial<Record<FieldType, SchemaOf>> = {
  Int: () => int32,
  // The same forms as in answers: a text where a JSON number would lose digits.
  BigInt: () => ({ type: ["integer", "string"], pattern: "^-?[0-9]+$" }),
  Decimal: () => ({ type: "number" }),
  String: textSchema,
  Json: () => text,
  Bytes: () => text,
};

/**
 * Returns the schema of one value of a condition in a query string. `docs/lists.md` lists the
 * operators.
 */
export function askedSchema(field: Field): JsonSchema {
  return (asked[field.type] ?? shown[field.type])(field);
}

/** Returns the schema of the id of a record, in a path and in a batch. */
export function idSchema({ key, keys }: Pick<Definition, "key" | "keys">): JsonSchema {
  const schema = askedSchema(key);
  if (keys.length > 1)
    return {
      type: "string",
      pattern: `^${keys.map((field) => (field.type === "String" ? "[^,]*" : "[^,]+")).join(",")}$`,
      description: `The values of ${keys.map(({ name }) => name).join(", ")}, each percent-encoded, with commas between them.`,
      examples: [keys.map(exampleOfKey).join(",")],
    };
  return schema["type"] === "string" && schema["format"] === undefined ? { ...schema, minLength: 1 } : schema;
}

function exampleOfKey(field: Field): string {
  // The only form of an Instant in an id.
  const example =
    field.type === "Instant" ? "2026-03-28T14:30:00.000+00:00" : exampleOf(askedSchema(field), "a");
  return encodeURIComponent(String(example));
}
