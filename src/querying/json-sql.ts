import { quoteText } from "../db/names.ts";
import type { FieldType } from "../mapping/definition.ts";
import { columnText } from "./condition-text.ts";
import type { JsonPlace, JsonTemplate } from "./json-template.ts";
import { writerOfValue, type WriteValue } from "./json-text.ts";

/** JSON of records that PostgreSQL writes (docs/decisions/0046-included-records-as-json.md). */
export interface RecordSql {
  /** Expression over the columns of the selection. It is never NULL. */
  readonly text: string;
  /**
   * Replaces the texts of PostgreSQL that the expression left by the JSON of their values. Works
   * for one or many records.
   */
  readonly complete: (json: string) => string;
}

/**
 * Marks the beginning and end of a value that the expression left. JSON has no such character
 * within a text.
 */
const mark = "\u0001";
/**
 * The names contain the schema, because another schema may have a function with better fitting
 * argument types.
 */
const concat = "pg_catalog.concat";
const jsonOf = (text: string): string => `pg_catalog.to_json(${text})::text`;
/** Limit of the arguments of one call. Functions of PostgreSQL take at most 100. */
const mostArguments = 90;

/**
 * Returns the expression for the output of `createRecordWriter`, equal to the byte. Returns
 * undefined for a template with relations to many, which have statements of their own.
 */
export function recordSqlOf(template: JsonTemplate): RecordSql | undefined {
  const writers: WriteValue[] = [];
  const text = recordText(template, writers);
  if (text === undefined) return undefined;
  function written(left: string): string {
    const colon = left.indexOf(":");
    return (writers[Number(left.slice(0, colon))] as WriteValue)(JSON.parse(left.slice(colon + 1)) as string);
  }
  return {
    text,
    complete(json) {
      if (!json.includes(mark)) return json;
      return json
        .split(mark)
        .map((part, index) => (index % 2 === 0 ? part : written(part)))
        .join("");
    },
  };
}

function recordText(template: JsonTemplate, writers: WriteValue[]): string | undefined {
  const parts: string[] = [];
  for (const part of template) {
    const text = typeof part === "string" ? constantText(part, writers) : placeText(part, writers);
    if (text === undefined) return undefined;
    parts.push(text);
  }
  return concatenated(parts);
}

/**
 * Writes a constant text. Characters beyond ASCII stay in the process, because the encoding of the
 * database may lack them.
 */
function constantText(part: string, writers: WriteValue[]): string {
  return /^[ -~]*$/.test(part) ? quoteText(part) : leftText(`'""'`, () => part, writers);
}

/**
 * Writes a marked value that the process completes.
 *
 * @param json Expression for the input text of `write`, as JSON.
 */
function leftText(json: string, write: WriteValue, writers: WriteValue[]): string {
  return `${concat}(pg_catalog.chr(1), '${writers.push(write) - 1}:', ${json}, pg_catalog.chr(1))`;
}

function concatenated(parts: readonly string[]): string {
  if (parts.length <= mostArguments) return `${concat}(${parts.join(", ")})`;
  const rest = concatenated(parts.slice(mostArguments));
  return `${concat}(${parts.slice(0, mostArguments).join(", ")}) || ${rest}`;
}

function placeText(place: JsonPlace, writers: WriteValue[]): string | undefined {
  if (place.kind === "many") return undefined;
  if (place.kind === "value") return valueText(place, writers);
  const { alias, link } = place.joined;
  const text = recordText(place.of, writers);
  return text && `CASE WHEN ${columnText(alias, link.to)} IS NULL THEN 'null' ELSE ${text} END`;
}

function valueText({ field, alias }: JsonPlace & { readonly kind: "value" }, writers: WriteValue[]): string {
  const column = columnText(alias, field);
  const write = writerOfValue(field);
  // `concat` gives the text that a client would get, for every type of the column. A cast cuts the
  // blanks of a `char`, and adds the mask to an `inet`.
  const text = `${concat}(${column})`;
  const left = leftText(jsonOf(text), write, writers);
  const [when = "", json = left] = field.isList ? [] : expressions[field.type](column, text);
  const otherwise = when === "" ? json : `CASE WHEN ${when} THEN ${json} ELSE ${left} END`;
  // IS NULL is also true of a composite value whose fields are all null.
  return `CASE WHEN ${column} IS NOT DISTINCT FROM NULL THEN '${write(null)}' ELSE ${otherwise} END`;
}

/** A condition ("": always) and the JSON where it holds. Empty: the process writes the JSON. */
type Expression = (column: string, text: string) => readonly [when: string, json: string] | readonly [];

const leave: Expression = () => [];
const asText: Expression = (_, text) => ["", jsonOf(text)];
/** Writes integers of at most fifteen digits, which are safe integers. */
const asInteger: Expression = (column, text) => [
  `pg_catalog.pg_typeof(${column}) = ANY('{pg_catalog.int2,pg_catalog.int4,pg_catalog.int8}'::pg_catalog.regtype[]) AND pg_catalog.length(${text}) < 16`,
  text,
];

/**
 * Expressions by type. The process writes dates and decimals: PostgreSQL takes up to 20 us for the
 * JSON of one.
 */
const expressions: Readonly<Record<FieldType, Expression>> = {
  Int: asInteger,
  BigInt: asInteger,
  Float: leave,
  Decimal: leave,
  String: asText,
  Boolean: (_, text) => ["", `CASE ${text} WHEN 't' THEN 'true' ELSE 'false' END`],
  DateTime: leave,
  Instant: leave,
  Date: asText,
  Time: asText,
  Interval: asText,
  Json: leave,
  Bytes: leave,
  Uuid: asText,
  Enum: asText,
};
