import type { TextSql } from "../db/text-sql.ts";
import { quoteTable } from "../db/names.ts";
import { ResultTooLargeError } from "../db/result-limit.ts";
import type { Definition } from "../mapping/definition.ts";
import {
  columnText,
  conditionText,
  createParameters,
  fromText,
  versionText,
  type Parameters,
} from "./condition-text.ts";
import { allOf, isAlways, not, type Condition } from "./condition.ts";
import { indexedLead } from "./indexed-lead.ts";
import { afterText, type Bound } from "./keyset.ts";
import type { RecordSql } from "./json-sql.ts";
import type { Link } from "./links.ts";
import { mayBeNull, orderText, type AliasOf, type OrderItem } from "./order.ts";
import type { ManySelection, Raw, RelatedPage, Selection, SelectionStatement } from "./selection.ts";

/** The selection and order of the records to read. */
export interface Reading {
  readonly condition: Condition;
  readonly order?: readonly OrderItem[];
  readonly skip?: number;
  readonly take?: number;
  /** Only records after this position in the order. */
  readonly after?: Bound | undefined;
}

/** The part of a reading that one statement reads. */
interface Part extends Reading {
  /** See `indexedLead`. */
  readonly lead?: OrderItem | undefined;
}

export async function readRecords(
  sql: TextSql,
  statement: SelectionStatement,
  reading: Reading,
): Promise<Raw[]> {
  const rows: Raw[] = await readParts(sql, statement, reading, () => []);
  await readManys(sql, statement, rows);
  return rows;
}

/**
 * Reads a page of records with their relations. Counts all records that meet the condition, in the
 * same statement, when the page has a record at `countAt`.
 *
 * @param countAt Number from 1: a full first page is counted by its last record, any other page by
 *   its first one.
 * @returns `total` is undefined when the page ends before `countAt`.
 */
export async function readCountedPage(
  sql: TextSql,
  statement: SelectionStatement,
  { reading, countAt }: { readonly reading: Reading; readonly countAt: number },
): Promise<{ readonly rows: readonly Raw[]; readonly total: number | undefined }> {
  const parameters = createParameters();
  const [page] = selectText(statement, reading, () => [], reading.order, parameters);
  const all = `SELECT count(*) ${fromText(statement.root.definition, reading.condition, parameters)}`;
  const place = parameters.add(countAt);
  const text = `SELECT page.*, CASE WHEN row_number() OVER () = ${place} THEN (${all}) END FROM (${page}) AS page`;
  const rows: Raw[] = await sql(text, parameters.values);
  const total = rows[countAt - 1]?.[statement.width];
  for (const row of rows) row.length = statement.width;
  await readManys(sql, statement, rows);
  return { rows, total: total === undefined ? undefined : Number(total) };
}

/** Reads the record that meets the condition, and whether it meets a second one. */
export async function readJudged(
  sql: TextSql,
  statement: SelectionStatement,
  { condition, judge }: { readonly condition: Condition; readonly judge: Condition },
): Promise<{ readonly raw: Raw; readonly isFit: boolean } | undefined> {
  const [row] = await sql(
    ...selectText(statement, { condition }, (parameters) =>
      isAlways(judge) ? [] : [conditionText(judge, "t", parameters)],
    ),
  );
  if (row === undefined) return undefined;
  const [answer = "t"] = row.splice(statement.width);
  await readManys(sql, statement, [row]);
  return { raw: row, isFit: answer === "t" };
}

/** Reads the version of the record that meets the condition. Returns undefined without a record. */
export async function readVersion(
  sql: TextSql,
  definition: Definition,
  condition: Condition,
): Promise<string | undefined> {
  const parameters = createParameters();
  const text = `SELECT ${versionText("t", definition.fields)} ${fromText(definition, condition, parameters)}`;
  const [row] = await sql(text, parameters.values);
  return row?.[0] ?? undefined;
}

/** Reads records with the position of each in the order. */
export async function readPositions(
  sql: TextSql,
  statement: SelectionStatement,
  reading: Reading,
): Promise<readonly { readonly raw: Raw; readonly position: readonly (string | null)[] }[]> {
  const rows = await readParts(sql, statement, reading, (_, aliasOf) =>
    (reading.order ?? []).map(({ links, field }) => columnText(aliasOf(links), field)),
  );
  const found = rows.map((row) => ({ position: row.splice(statement.width), raw: row as Raw }));
  await readManys(
    sql,
    statement,
    found.map(({ raw }) => raw),
  );
  return found;
}

/** Reads rows in as many statements as `partsOf` returns, until the page is full. */
async function readParts(
  sql: TextSql,
  statement: SelectionStatement,
  reading: Reading,
  extraColumns: ExtraColumns,
): Promise<(string | null)[][]> {
  const { take = Infinity } = reading;
  const rows: (string | null)[][] = [];
  for (const part of partsOf(reading, statement.root.definition)) {
    const left = reading.take === undefined ? {} : { take: take - rows.length };
    if (rows.length < take)
      rows.push(...(await sql(...selectText(statement, { ...part, ...left }, extraColumns, reading.order))));
  }
  return rows;
}

/**
 * Splits an order that begins with a column that may be NULL. One statement is for records with a
 * value there, and one for records without a value. PostgreSQL finds the position of each in an
 * index, but no position for both. With one statement, a page in the middle of a million records
 * read 500,000.
 */
function partsOf(reading: Reading, definition: Definition): readonly Part[] {
  const { condition, order: [first, ...order] = [], skip = 0, after } = reading;
  if (first === undefined || first.links.length > 0 || !mayBeNull(first) || skip > 0) return [reading];
  const { field, nulls } = first;
  const isMissing: Condition = { kind: "null", field };
  const at = after?.values[0];
  const there: Part = {
    ...reading,
    condition: allOf([condition, not(isMissing)]),
    order: [{ ...first, field: { ...field, isOptional: false, isNullable: false } }, ...order],
    after: at === null ? undefined : after,
  };
  const missing: Part = {
    ...reading,
    condition: allOf([condition, isMissing]),
    order,
    lead: indexedLead(definition, condition, [first, ...order]),
    after: at === null && after !== undefined ? { ...after, values: after.values.slice(1) } : undefined,
  };
  const parts = nulls === "last" ? [there, missing] : [missing, there];
  return at === undefined ? parts : parts.slice(parts.indexOf(at === null ? missing : there));
}

type ExtraColumns = (parameters: Parameters, aliasOf: AliasOf) => readonly string[];

function selectText(
  statement: SelectionStatement,
  { condition, order = [], skip = 0, take, after, lead }: Part,
  extraColumns: ExtraColumns,
  joinedFor: readonly OrderItem[] = order,
  parameters: Parameters = createParameters(),
): [string, Parameters["values"]] {
  const { from, aliasOf } = statement.withOrder(joinedFor);
  const columns = [statement.columns, ...extraColumns(parameters, aliasOf)].join(", ");
  const where = [
    ...(isAlways(condition) ? [] : [conditionText(condition, "t", parameters)]),
    ...(after === undefined ? [] : [afterText(order, after, aliasOf, parameters)]),
  ];
  const text = joined([
    `SELECT ${columns} FROM ${from}`,
    where.length === 0 ? "" : `WHERE ${where.map((one) => `(${one})`).join(" AND ")}`,
    order.length === 0 ? "" : `ORDER BY ${orderText([lead ?? [], order].flat(), aliasOf)}`,
    take === undefined ? "" : `LIMIT ${parameters.add(take)}`,
    skip === 0 ? "" : `OFFSET ${parameters.add(skip)}`,
  ]);
  return [text, parameters.values];
}

function joined(parts: readonly string[]): string {
  return parts.filter((part) => part !== "").join(" ");
}

/** Reads the to-many relations of the given records, with one statement for each relation. */
export async function readManys(
  sql: TextSql,
  statement: SelectionStatement,
  rows: readonly Raw[],
): Promise<void> {
  for (const selection of statement.withManys) {
    for (const many of selection.manys.values()) await readMany(sql, selection, many, rows);
  }
}

async function readMany(
  sql: TextSql,
  { definition }: Selection,
  { link, from, position, statement, rest }: ManySelection,
  rows: readonly Raw[],
): Promise<void> {
  const values = rows.map((row) => row[from] as string | null);
  const lists = await readLinkedTo(sql, { definition, link, statement, ...rest }, values);
  rows.forEach((row, index) => (row[position] = lists[index] ?? []));
}

/** The selection and order of the records at the other end of a link. */
interface LinkedReading extends RelatedPage {
  /** Definition at the near end of the link. */
  readonly definition: Definition;
  readonly link: Link;
  readonly statement: SelectionStatement;
}

/**
 * Reads the linked records of values, in one statement. The values need not be in a table.
 *
 * @param values Values of the near field of the link, as texts.
 * @returns The records for each value.
 */
export async function readLinkedTo(
  sql: TextSql,
  reading: LinkedReading,
  values: readonly (string | null)[],
): Promise<readonly (readonly Raw[])[]> {
  const distinct = distinctOf(values);
  const lists = distinct.map((): Raw[] => []);
  if (distinct.length > 0) {
    const { columns } = reading.statement;
    const { given, linked, limit, parameters } = linkedTo(reading, distinct);
    const text =
      limit === ""
        ? // A join: a table that has no index is read once, and not for each value.
          `SELECT p.place${columns === "" ? "" : ", "}${columns} FROM ${given} CROSS JOIN ${linked}`
        : `SELECT p.place, r.* FROM ${given} CROSS JOIN LATERAL (SELECT ${columns} FROM ${linked} ${limit}) AS r`;
    for (const [place, ...record] of await sql(text, parameters.values))
      lists[Number(place) - 1]?.push(record);
    await readManys(sql, reading.statement, lists.flat());
  }
  // Not by `indexOf`: a relation within another one may have 10,000 values.
  const byValue = new Map(distinct.map((value, index) => [value, lists[index] ?? []]));
  return values.map((value) => (value === null ? [] : (byValue.get(value) ?? [])));
}

/**
 * Limit in bytes of the linked records of one record: PostgreSQL joins them before the process can
 * count them. No answer can hold more.
 */
const maxLinkedBytes = 16 * 1024 * 1024;

/**
 * Reads the same records as JSON, which PostgreSQL writes.
 *
 * @param record JSON expression of the same statement.
 * @returns For each value, the JSON of its records, with commas between them.
 */
export async function readLinkedJson(
  sql: TextSql,
  { record, ...reading }: LinkedReading & { readonly record: RecordSql },
  values: readonly (string | null)[],
): Promise<readonly string[]> {
  const distinct = distinctOf(values);
  const lists = new Map<string, string>();
  if (distinct.length > 0) {
    const { given, linked, limit, parameters } = linkedTo(reading, distinct);
    const records = `SELECT ${record.text} AS json FROM ${linked} ${limit}`;
    const text = reading.link.isMany
      ? `SELECT p.place, l.* FROM ${given} CROSS JOIN LATERAL (
          SELECT pg_catalog.string_agg(m.json, ',') FILTER (WHERE m.bytes <= ${maxLinkedBytes}), bool_or(m.bytes > ${maxLinkedBytes}) FROM (
            SELECT r.json, sum(pg_catalog.octet_length(r.json)) OVER (ROWS UNBOUNDED PRECEDING) AS bytes FROM (${records}) AS r) AS m) AS l`
      : `SELECT p.place, ${record.text}, false FROM ${given} CROSS JOIN ${linked}`;
    for (const [place, json, isCut] of await sql(text, parameters.values)) {
      if (isCut === "t") throw new ResultTooLargeError(maxLinkedBytes);
      const value = distinct[Number(place) - 1] ?? "";
      // A key without a constraint may exist twice: the first record counts.
      if (!lists.has(value)) lists.set(value, record.complete(json ?? ""));
    }
  }
  return values.map((value) => (value === null ? "" : (lists.get(value) ?? "")));
}

function distinctOf(values: readonly (string | null)[]): readonly string[] {
  return [...new Set(values.filter((value) => value !== null))];
}

/** Returns the parts of a statement that reads the linked records of the values. */
function linkedTo(
  { definition, link, statement, where = allOf([]), order = [], take, skip }: LinkedReading,
  values: readonly string[],
): {
  /** The values, numbered from 1 on. */
  readonly given: string;
  readonly linked: string;
  readonly limit: string;
  readonly parameters: Parameters;
} {
  const parameters = createParameters();
  const [near, far] = [columnText("n", link.from), columnText("t", link.to)];
  const total = totalOrder(order, link.target);
  const { from, aliasOf } = statement.withOrder(total);
  // The empty array gives the values the type of their own column. The column at the other end may
  // be narrower, such as a smallint or a domain.
  const none = `ARRAY(SELECT ${near} FROM ${quoteTable(definition.table)} AS n LIMIT 0)`;
  return {
    given: `unnest(${none} || ${parameters.add(values)}) WITH ORDINALITY AS p (value, place)`,
    linked: joined([
      `${from} WHERE ${far} = p.value`,
      isAlways(where) ? "" : `AND (${conditionText(where, "t", parameters)})`,
      link.isMany ? `ORDER BY ${orderText(total, aliasOf)}` : "",
    ]),
    limit: joined([
      take === undefined ? "" : `LIMIT ${parameters.add(take)}`,
      skip === undefined ? "" : `OFFSET ${parameters.add(skip)}`,
    ]),
    parameters,
  };
}

/** Returns the order with the key at its end, so that it is unique for each record. */
export function totalOrder(order: readonly OrderItem[], { keys }: Definition): readonly OrderItem[] {
  const missing = keys.filter(
    (key) => !order.some(({ links, field }) => links.length === 0 && field.name === key.name),
  );
  if (missing.length === 0) return order;
  const ofKey = missing.map((field): OrderItem => ({ links: [], field, direction: "asc", nulls: "last" }));
  return [...order, ...ofKey];
}
