import { isGenerator, readDefault } from "../read/defaults.ts";
import { typeOptionsOf } from "../type-options.ts";
import { isTextItself } from "../native.ts";
import type { TypedField } from "./column-type.ts";
import { literalOf, textOfLiteral, withoutCasts } from "../sql-text.ts";

/**
 * The default of a field: a literal, or a function that mapping files can name. All others are
 * `database`, at any value.
 */
export type ImportedDefault =
  | { readonly kind: "literal"; readonly value: unknown }
  | { readonly kind: "now" | "uuid" | "database" };

const now = /^(?:now\(\)|CURRENT_TIMESTAMP|transaction_timestamp\(\)|LOCALTIMESTAMP)$/i;
const uuid = /^(?:(?:\w+\.)?gen_random_uuid|(?:\w+\.)?uuid_generate_v4)\(\)$/;

/**
 * Pattern of names of creation times. With `now`, no client may set the time, which fits a creation
 * time.
 */
const creation = /^(?:date_?)?(?:created?|inserted|creation)(?:_?(?:at|on|date|time|timestamp))?$/i;

/**
 * Reads the default of a column in PostgreSQL's form. Returns undefined for NULL.
 *
 * @param column Name of the column.
 * @param isKey Whether the column alone is the key.
 */
export function importedDefault(
  sql: string,
  typed: TypedField,
  { column, isKey }: { readonly column: string; readonly isKey: boolean },
): ImportedDefault | undefined {
  const bare = withoutCasts(sql);
  if (/^NULL$/i.test(bare)) return undefined;
  const isTime = typed.type === "DateTime" && typed.list === undefined;
  if (isTime && now.test(bare)) return { kind: creation.test(column) ? "now" : "database" };
  if (typed.type === "Uuid" && typed.list === undefined && uuid.test(bare)) return { kind: "uuid" };
  const value = typed.list === true ? listOf(bare, typed) : scalarOf(bare, typed);
  if (value === undefined || !isTextItself(typed)) return { kind: "database" };
  const field = { type: typed.type, isList: typed.list === true, isKey, ...typeOptionsOf(typed) };
  const read = readDefault(field, value);
  return read.kind === "ok" && read.value.kind === "literal"
    ? { kind: "literal", value }
    : { kind: "database" };
}

function listOf(bare: string, typed: TypedField): readonly unknown[] | undefined {
  const [, array] = /^ARRAY\[(.*)\]$/s.exec(bare) ?? [];
  const [, braces] = /^\{([^{}"\\]*)\}$/.exec(textOfLiteral(bare) ?? "") ?? [];
  if (array === "" || braces === "") return [];
  const items = array?.split(", ").map((item) => withoutCasts(item)) ?? braces?.split(",").map(quoted);
  const values = items?.map((item) => (/^'?null'?$/i.test(item) ? undefined : scalarOf(item, typed)));
  return values?.includes(undefined) === true ? undefined : values;
}

const quoted = (item: string): string => `'${item}'`;

function scalarOf(bare: string, { type }: TypedField): unknown {
  const text = literalOf(bare);
  const isNumber = text !== undefined && /^-?\d+(?:\.\d+)?$/.test(text);
  switch (type) {
    case "Int":
    case "Float":
      return isNumber ? Number(text) : undefined;
    case "BigInt":
    case "Decimal":
      // A number with more digits than a double holds stays a text.
      return isNumber ? (text.length <= 15 ? Number(text) : text) : undefined;
    case "Boolean":
      return /^(?:true|false)$/i.test(text ?? bare) ? (text ?? bare).toLowerCase() === "true" : undefined;
    case "String":
      return text === undefined || isGenerator(text) ? undefined : textOfLiteral(bare);
    case "Enum":
    case "Uuid":
      return text === undefined || (type === "Uuid" && isGenerator(text)) ? undefined : text;
    case "Json":
      return jsonOf(text);
    case "Bytes":
    case "Date":
    case "DateTime":
    case "Instant":
    case "Interval":
    case "Time":
      return undefined;
  }
}

function jsonOf(text: string | undefined): unknown {
  try {
    return text === undefined ? undefined : (JSON.parse(text) as unknown);
  } catch {
    return undefined;
  }
}
