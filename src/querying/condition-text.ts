import { quoteName, quoteTable, quoteText } from "../db/names.ts";
import type { Definition, Field } from "../mapping/definition.ts";
import { hasOrder } from "../mapping/native.ts";
import { isAlways, type Condition, type Parameter, isColumn, type StatementColumn } from "./condition.ts";

/** The values of a statement in the order of its placeholders. */
export interface Parameters {
  readonly values: (Parameter | readonly Parameter[])[];
  /** Returns the placeholder of the value: `$3`. */
  add(value: Parameter | readonly Parameter[]): string;
  /** Returns an alias that no other table of the statement has. */
  alias(): string;
  /** Returns whether the planner may make a join of one more condition on related records. */
  mayJoin(): boolean;
}

/**
 * Most such joins of a statement. The planner tries their orders, which takes 13 ms for four and
 * 0.26 s for eight. The 48 conditions of one request took 13 s, without a single record.
 */
const mostJoins = 4;

export function createParameters(): Parameters {
  const values: (Parameter | readonly Parameter[])[] = [];
  let [aliases, joins] = [0, 0];
  return {
    values,
    add(value) {
      if (isColumn(value as Parameter)) return (value as StatementColumn).column;
      values.push(value);
      return `$${values.length}`;
    },
    alias: () => `r${(aliases += 1)}`,
    mayJoin: () => (joins += 1) <= mostJoins,
  };
}

/** Writes the column of a field, quoted, behind the alias of its table. */
export function columnText(alias: string, field: Field): string {
  return `${alias}.${quoteName(field.column)}`;
}

/** Writes the columns of fields, with commas between them. */
export function columnsText(alias: string, fields: readonly Field[]): string {
  return fields.map((field) => columnText(alias, field)).join(", ");
}

/** Writes the column in the form in which values are compared with it: see `hasOrder`. */
function comparedText(alias: string, field: Field): string {
  const column = columnText(alias, field);
  if (field.native === undefined || hasOrder(field)) return column;
  return `${column}::text${field.isList ? "[]" : ""}`;
}

/**
 * Writes the text that answers show. A cast to text adds the mask to an `inet`. PostgreSQL refuses
 * LIKE under a collation in which different texts are equal, which the database's own collation
 * never is.
 */
function searchedText(alias: string, field: Field): string {
  const column = columnText(alias, field);
  const text =
    field.native === undefined
      ? `${column}::text`
      : `(CASE WHEN ${column} IS NOT NULL THEN format('%s', ${column}) END)`;
  return `${text} COLLATE "default"`;
}

/**
 * Writes a condition as SQL. Each list of values is one array, so that the text depends only on the
 * shape of the condition. One prepared statement then serves all values.
 *
 * @param alias Alias of the table of the condition.
 */
export function conditionText(condition: Condition, alias: string, parameters: Parameters): string {
  switch (condition.kind) {
    case "all":
    case "any":
      return joined(condition, alias, parameters);
    case "not":
      return `NOT (${conditionText(condition.of, alias, parameters)})`;
    case "notFalse":
      return `(${conditionText(condition.of, alias, parameters)}) IS NOT FALSE`;
    case "compare": {
      const { field, operator, value } = condition;
      // Writes a constant, so that the planner drops conditions that can never be true.
      const operand = value === null ? "NULL" : parameters.add(value);
      const compared = isColumn(value) ? nativeText(alias, field, operand) : `${operand}${typeText(field)}`;
      return `${comparedText(alias, field)} ${operator} ${compared}`;
    }
    case "in": {
      const { field, values } = condition;
      if (values.some(isColumn)) return inOfUsersText(condition, alias, parameters);
      return `${comparedText(alias, field)} = ANY(${parameters.add(values)}${typeText(field, "[]")})`;
    }
    case "null":
      return `${columnText(alias, condition.field)} IS NULL`;
    case "like":
      return `${searchedText(alias, condition.field)} ${likeText(condition, parameters)}`;
    case "list": {
      const { field, operator, values } = condition;
      if (values.some(isColumn)) return listOfUsersText(condition, alias, parameters);
      return `${comparedText(alias, field)} ${operator} ${parameters.add(values)}`;
    }
    case "json":
      return jsonText(condition, alias, parameters);
    case "related":
      return relatedText(condition, alias, parameters);
    case "version":
      return `${versionText(alias, condition.fields)} = ${parameters.add(condition.version)}`;
  }
}

/** Writes the FROM and WHERE of a statement on the records of one table, whose alias is `t`. */
export function fromText(
  { table }: Pick<Definition, "table">,
  condition: Condition,
  parameters: Parameters,
): string {
  return `FROM ${quoteTable(table)} AS t ${whereText(condition, parameters)}`;
}

/** Writes the WHERE of a statement on the table with the alias `t`; empty for every row. */
export function whereText(condition: Condition, parameters: Parameters): string {
  return isAlways(condition) ? "" : `WHERE ${conditionText(condition, "t", parameters)}`;
}

/**
 * Writes the version of a record: it changes with any of its fields. It does not use `xmin`, which
 * views and the rows of a partitioned table lack. It does not use the whole row, because svc may
 * lack the right to read columns without a field.
 */
export function versionText(alias: string, fields: readonly Field[]): string {
  return `md5(ROW(${columnsText(alias, fields)})::text)`;
}

function joined(
  { kind, of }: Extract<Condition, { kind: "all" | "any" }>,
  alias: string,
  parameters: Parameters,
): string {
  const [word, empty] = kind === "all" ? [" AND ", "TRUE"] : [" OR ", "FALSE"];
  // The planner makes no joins of alternatives.
  const own = kind === "all" || of.length < 2 ? parameters : { ...parameters, mayJoin: () => true };
  const texts = of.map((one) => conditionText(one, alias, own));
  return texts.length > 1 ? texts.map((text) => `(${text})`).join(word) : (texts[0] ?? empty);
}

/**
 * Compares with each column separately. In one array, the other values would get the column's type.
 */
function inOfUsersText(
  condition: Extract<Condition, { kind: "in" }>,
  alias: string,
  parameters: Parameters,
): string {
  const { field, values } = condition;
  const own = values.filter(isColumn).map((value): Condition => {
    return { kind: "compare", field, operator: "=", value };
  });
  const rest: Condition = { ...condition, values: values.filter((value) => !isColumn(value)) };
  return `(${conditionText({ kind: "any", of: [...own, rest] }, alias, parameters)})`;
}

/**
 * Compares the items of a list. PostgreSQL cannot compare a `bigint[]` with the `integer[]` of the
 * statement's columns, but each `bigint` with an `integer`.
 */
function listOfUsersText(
  { field, operator, values }: Extract<Condition, { kind: "list" }>,
  alias: string,
  parameters: Parameters,
): string {
  const column = comparedText(alias, field);
  const tests = values.map((value, index) => {
    const place = index + 1;
    const text = parameters.add(value);
    if (isNative(field)) {
      const list = nativeText(alias, field, `jsonb_build_array(${isColumn(value) ? text : `${text}::text`})`);
      return operator === "=" ? `(${column})[${place}:${place}] = ${list}` : `${column} @> ${list}`;
    }
    return `${text} = ${operator === "=" ? `(${column})[${place}]` : `ANY(${column})`}`;
  });
  if (operator === "=") tests.push(`cardinality(${column}) = ${values.length}`);
  const word = operator === "&&" ? " OR " : " AND ";
  return `CASE WHEN ${column} IS NOT NULL THEN (${tests.join(word)}) IS TRUE END`;
}

const isNative = (field: Field): boolean => field.native !== undefined && hasOrder(field);

/**
 * Gives a column of the statement the native type of a field, which parameters get automatically.
 * The type comes from the row, because its schema may not be in the search path.
 */
function nativeText(alias: string, field: Field, text: string): string {
  if (!isNative(field)) return text;
  const row = `jsonb_populate_record(${alias}, jsonb_build_object(${quoteText(field.column)}, ${text}))`;
  return `(${row}).${quoteName(field.column)}`;
}

function relatedText(
  { link: { from, to, target }, of }: Extract<Condition, { kind: "related" }>,
  alias: string,
  parameters: Parameters,
): string {
  const inner = parameters.alias();
  // With an OFFSET, PostgreSQL looks the related records up for each record.
  const isolated = parameters.mayJoin() ? "" : " OFFSET 0";
  const joint = `${columnText(inner, to)} = ${columnText(alias, from)}`;
  const where = isAlways(of) ? joint : `${joint} AND (${conditionText(of, inner, parameters)})`;
  return `EXISTS (SELECT 1 FROM ${quoteTable(target.table)} AS ${inner} WHERE ${where}${isolated})`;
}

function likeText(
  { pattern, isCaseSensitive }: { readonly pattern: string; readonly isCaseSensitive: boolean },
  parameters: Parameters,
): string {
  return `${isCaseSensitive ? "LIKE" : "ILIKE"} ${parameters.add(pattern)}`;
}

function jsonText(
  { field, path, test }: Extract<Condition, { kind: "json" }>,
  alias: string,
  parameters: Parameters,
): string {
  const text = `${columnText(alias, field)} #>> ${parameters.add(path)}::text[]`;
  switch (test.kind) {
    case "compare":
      return `(${text}) ${test.operator} ${parameters.add(test.value)}`;
    case "in":
      return `(${text}) = ANY(${parameters.add(test.values)}::text[])`;
    case "null":
      return `(${text}) IS NULL`;
    case "like":
      return `(${text}) ${likeText(test, parameters)}`;
  }
}

/**
 * Writes the cast of a value where PostgreSQL must not use the column's type. A `date` column would
 * cut the time off before the comparison, and a `smallint` would refuse a larger number. An index
 * on one integer type serves values of the others. Every other value is read as the column's own
 * type. Lists are too, because arrays of different types cannot be compared.
 */
export function typeText({ type }: Field, suffix = ""): string {
  const own = comparedTypes[type];
  return own === undefined ? "" : `::${own}${suffix}`;
}

const comparedTypes: Partial<Record<Field["type"], string>> = {
  DateTime: "timestamptz",
  Int: "int4",
  BigInt: "int8",
};
