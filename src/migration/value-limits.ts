import type { ClientBase } from "pg";
import { counted } from "../kit/counted.ts";
import { numberTypes, type Definition, type Field } from "../mapping/definition.ts";
import { digitsOf } from "../mapping/storable.ts";
import { partsOfTable, quoteName, quoteTable } from "../db/names.ts";
import type { RowChecks, TableColumn } from "./row-checks.ts";

/** Effect of PostgreSQL's cast of a column to its new type on the values. */
interface Cast {
  /** Completes "the column is to hold ...". */
  readonly expected: string;
  /** An SQL condition on `value` that is true when the cast fails, or cuts a text. */
  readonly broken?: string | undefined;
  /**
   * An SQL condition on `value` that is true when the cast loses something, and the name of the
   * loss.
   */
  readonly lost?: { readonly condition: string; readonly what: string };
  /** Whether the cast changes no value that is not `broken`. */
  readonly isLossless: boolean;
}

/** The limit that the wanted type of a column sets. */
export interface ValueLimit extends TableColumn {
  /** @param from The current type in PostgreSQL's words, without the `[]` of a list. */
  readonly castFrom: (from: string) => Cast | undefined;
  readonly isList: boolean;
}

/** Returns the limits that the types of a definition's columns set. */
export function valueLimitsOf({ table, fields }: Definition): readonly ValueLimit[] {
  return fields.map((field) => ({
    table,
    column: field.column,
    isList: field.isList,
    castFrom: (from) => castOf(field, from),
  }));
}

const numbers = /^(?:smallint|integer|bigint|numeric|real|double precision)/;
const moments = /^timestamp/;

/**
 * Returns the cast to a field's type. Undefined when every value fits the new type, or there is no
 * such cast.
 */
function castOf(field: Field, from: string): Cast | undefined {
  const { type, native, length } = field;
  if (native !== undefined) return undefined;
  if (type === "String" && length !== undefined) {
    const [, now = Infinity] = /^character varying\((\d+)\)$/.exec(from) ?? [];
    // Spaces at the end count, since PostgreSQL would cut them without a warning.
    const broken = Number(now) <= length ? undefined : `char_length(value::text) > ${length}`;
    return { expected: `at most ${length} characters`, broken, isLossless: true };
  }
  if (numberTypes.includes(type)) return numbers.test(from) ? numberCast(field, from) : undefined;
  return temporalCast(field, from);
}

function numberCast(field: Field, from: string): Cast | undefined {
  const { type } = field;
  // NaN is greater than every number and no integer: the conditions of integer types refuse it.
  if (type === "Int")
    return {
      expected: "whole numbers of 32 bits",
      broken: "round(value::numeric) NOT BETWEEN -2147483648 AND 2147483647",
      isLossless: false,
    };
  if (type === "BigInt")
    return {
      expected: "whole numbers of 64 bits",
      // A float is compared as a float, because as a `numeric` it would only have 15 digits.
      broken: "round(value) >= 9223372036854775808 OR round(value) < -9223372036854775808",
      isLossless: false,
    };
  if (type === "Float" && from.startsWith("bigint"))
    return {
      expected: "floats",
      lost: { condition: "abs(value::numeric) > 9007199254740992", what: "more digits than a float has" },
      isLossless: false,
    };
  if (type !== "Decimal") return undefined;
  const { precision, scale } = digitsOf(field);
  const whole = precision - scale;
  return {
    expected: `at most ${whole} digits before the decimal point`,
    broken: `abs(round(value::numeric, ${scale})) >= 1e${whole} AND value::numeric <> 'NaN'`,
    isLossless: false,
  };
}

/**
 * Returns a cast between dates and times. The engine considers these casts lossless, and does not
 * warn.
 */
function temporalCast({ type }: Field, from: string): Cast | undefined {
  if (type === "Date" && moments.test(from))
    return {
      expected: "days",
      lost: { condition: "value <> value::date", what: "a time of day" },
      isLossless: false,
    };
  if (type === "Time" && moments.test(from))
    return {
      expected: "times of day",
      // PostgreSQL would turn infinite values into NULL.
      broken: "NOT isfinite(value)",
      lost: { condition: "value IS NOT NULL", what: "a day" },
      isLossless: false,
    };
  if ((type === "DateTime" || type === "Instant") && from === "date")
    return {
      expected: "times up to the year 294276",
      broken: "value > '294276-12-31' AND isfinite(value)",
      isLossless: false,
    };
  return undefined;
}

/** Counts the rows whose value cannot be cast, and the rows whose value loses something. */
async function countRows(
  client: ClientBase,
  { table, column, isList }: ValueLimit,
  { broken = "false", lost }: Cast,
): Promise<{ readonly broken: number; readonly lost: number }> {
  const rowsWith = (condition: string): string =>
    `count(*) FILTER (WHERE ${isList ? `EXISTS (SELECT FROM unnest(value) AS items (value) WHERE ${condition})` : condition})::float8`;
  const { rows } = await client.query<{ broken: number; lost: number }>(
    `SELECT ${rowsWith(broken)} AS broken, ${rowsWith(lost?.condition ?? "false")} AS lost
     FROM (SELECT ${quoteName(column)} AS value FROM ${quoteTable(table)}) AS given`,
  );
  return rows[0] ?? { broken: 0, lost: 0 };
}

/** The engine's sentence about a column whose values it would cast. */
export const castWarning =
  /^You are about to alter the column `([^`]+)` on the `([^`]+)` table,.* will be cast from /s;

/**
 * Checks the values of columns whose type changes. Some values cannot be cast, with any flag. The
 * engine warns of most casts to a narrower type, for any values; when all fit, nothing is lost. The
 * warning names no schema, so it may be about several tables.
 *
 * @param changed The columns whose type changes.
 */
export async function findNarrowed({
  client,
  limits,
  changed,
  objects,
  warnings,
}: RowChecks & {
  readonly limits: readonly ValueLimit[];
  readonly changed: readonly TableColumn[];
}): Promise<{
  readonly impossible: readonly string[];
  readonly losses: readonly string[];
  readonly settled: readonly string[];
  /** The columns of which every value can be cast, and may change by it. */
  readonly castable: readonly TableColumn[];
}> {
  const results: CastResult[] = [];
  for (const one of changed) results.push(await castResultOf({ client, limits, objects, ...one }));
  const settled = warnings.filter((warning) => {
    const [, column, table] = castWarning.exec(warning) ?? [];
    const about = results.filter((one) => one.column === column && partsOfTable(one.table).name === table);
    const isRefused = about.some(({ impossible }) => impossible !== undefined);
    return about.length > 0 && (isRefused || about.every(({ isLossless }) => isLossless));
  });
  return {
    impossible: results.flatMap(({ impossible }) => impossible ?? []),
    losses: results.flatMap(({ loss }) => loss ?? []),
    settled,
    castable: results.filter(({ isCastable }) => isCastable),
  };
}

/** The engine does not warn of this cast: the list becomes the text `{a,b}`. */
const listAsText: Cast = {
  expected: "one value",
  lost: { condition: "value IS NOT NULL", what: "a list of values" },
  isLossless: false,
};

interface CastResult extends TableColumn {
  readonly isLossless: boolean;
  readonly isCastable: boolean;
  readonly impossible?: string;
  readonly loss?: string;
}

async function castResultOf({
  client,
  limits,
  objects,
  table,
  column,
}: TableColumn &
  Pick<RowChecks, "client" | "objects"> & { readonly limits: readonly ValueLimit[] }): Promise<CastResult> {
  const limit = limits.find((one) => one.table === table && one.column === column);
  const [type = ""] =
    objects
      .find((one) => one.kind === "column" && one.table === table && one.name === column)
      ?.definition.split(/ NOT NULL| DEFAULT /) ?? [];
  const isList = type.endsWith("[]");
  const other = isList ? listAsText : undefined;
  const cast = limit?.isList === isList ? limit.castFrom(type.replace(/\[\]$/, "")) : other;
  if (limit === undefined || cast === undefined)
    return { table, column, isLossless: false, isCastable: false };
  const given = { table, column, isLossless: cast.isLossless, isCastable: !cast.isLossless };
  // A wider text needs no scan of the rows, of which there may be many.
  if (cast.broken === undefined && cast.lost === undefined) return given;
  const { broken, lost } = await countRows(client, limit, cast);
  const start = `The column ${column} of the table ${table} is to hold ${cast.expected}`;
  if (broken > 0) {
    const rest = `${counted(broken, "row has", "rows have")} a value beyond that. Change the values first; none is cut.`;
    return { ...given, isCastable: false, impossible: `${start}, and ${rest}` };
  }
  if (lost === 0) return given;
  const have = counted(lost, "row has", "rows have");
  return { ...given, loss: `${start}, and ${have} ${cast.lost?.what}, which would be lost.` };
}
