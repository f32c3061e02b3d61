import type { TextSql } from "../db/text-sql.ts";
import { quoteTable } from "../db/names.ts";
import type { Definition } from "../mapping/definition.ts";
import { columnText, conditionText, createParameters, type Parameters } from "./condition-text.ts";
import { allOf, isAlways, type Condition, type Parameter } from "./condition.ts";
import { orderText, type OrderItem } from "./order.ts";
import {
  pathOf,
  type ManySelection,
  type Raw,
  type Selection,
  type SelectionStatement,
} from "./selection.ts";

export interface Part {
  readonly skip?: number;
  readonly take?: number;
}

/** Reads the records that meet the condition, with their relations. */
export async function readRecords(
  sql: TextSql,
  statement: SelectionStatement,
  condition: Condition,
  order: readonly OrderItem[],
  { skip, take }: Part = {},
): Promise<Raw[]> {
  const parameters = createParameters();
  const { from, aliases } = statement.withOrder(order);
  const text = [
    `SELECT ${statement.columns} FROM ${from}`,
    whereText(condition, parameters),
    order.length === 0 ? "" : `ORDER BY ${orderText(order, (links) => aliases.get(pathOf(links)) as string)}`,
    take === undefined ? "" : `LIMIT ${parameters.add(take)}`,
    skip === undefined || skip === 0 ? "" : `OFFSET ${parameters.add(skip)}`,
  ];
  const rows: Raw[] = await sql(text.filter((line) => line !== "").join(" "), parameters.values);
  await readManys(sql, statement, rows);
  return rows;
}

/** Returns the condition that the key is this one. */
export function keyIs(definition: Definition, key: Parameter): Condition {
  return { kind: "compare", field: definition.key, operator: "=", value: key };
}

export function whereText(condition: Condition, parameters: Parameters, alias = "t"): string {
  return isAlways(condition) ? "" : `WHERE ${conditionText(condition, alias, parameters)}`;
}

/** Reads the to-many relations of records that were read, one statement for each relation. */
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
  const lists = new Map<string, Raw[]>();
  for (const row of rows) {
    const value = row[from] as string | null;
    const list: Raw[] = value === null ? [] : (lists.get(value) ?? []);
    if (value !== null) lists.set(value, list);
    row[position] = list;
  }
  if (lists.size === 0) return;
  const parameters = createParameters();
  const parent = columnText("p", link.from);
  const joint = `${columnText("t", link.to)} = ${parent}`;
  const order = rest.order ?? [];
  const byKey: OrderItem = { links: [], field: link.target.key, direction: "asc", nulls: "last" };
  const total = order.some(({ links, field }) => links.length === 0 && field.isKey)
    ? order
    : [...order, byKey];
  const { from: tables, aliases } = statement.withOrder(total);
  const where = whereText(rest.where ?? allOf([]), parameters).replace(/^WHERE /, "AND ");
  const inner = [
    `SELECT ${statement.columns} FROM ${tables} WHERE ${joint}`,
    where,
    `ORDER BY ${orderText(total, (links) => aliases.get(pathOf(links)) as string)}`,
    rest.take === undefined ? "" : `LIMIT ${parameters.add(rest.take)}`,
    rest.skip === undefined ? "" : `OFFSET ${parameters.add(rest.skip)}`,
  ];
  // Through the parent's own row, whose text of the value tells the lists apart.
  const text = `SELECT ${parent}, r.* FROM ${quoteTable(definition.table)} AS p CROSS JOIN LATERAL (${inner.filter((line) => line !== "").join(" ")}) AS r WHERE ${parent} = ANY(${parameters.add([...lists.keys()])})`;
  const found = await sql(text, parameters.values);
  const records: Raw[] = [];
  for (const [value, ...columns] of found) {
    const record: Raw = columns;
    lists.get(value as string)?.push(record);
    records.push(record);
  }
  await readManys(sql, statement, records);
}

/** Counts the records that meet the condition. */
export async function countRecords(
  sql: TextSql,
  definition: Definition,
  condition: Condition,
): Promise<number> {
  const parameters = createParameters();
  const where = whereText(condition, parameters);
  const [row] = await sql(
    `SELECT count(*) FROM ${quoteTable(definition.table)} AS t ${where}`,
    parameters.values,
  );
  return Number(row?.[0]);
}

/** Up to here an estimated count is exact (contract of the resource API, lists). */
const exactUpTo = 10_000;

/** Counts exactly up to 10,000, and asks the planner beyond: that costs the same whatever the table holds. */
export async function estimateRecords(
  sql: TextSql,
  definition: Definition,
  condition: Condition,
): Promise<{ readonly total: number; readonly isEstimate: boolean }> {
  const parameters = createParameters();
  const from = `FROM ${quoteTable(definition.table)} AS t ${whereText(condition, parameters)}`;
  const limit = parameters.add(exactUpTo + 1);
  const text = `SELECT count(*) FROM (SELECT 1 ${from} LIMIT ${limit}) AS few`;
  const [row] = await sql(text, parameters.values);
  const counted = Number(row?.[0]);
  if (counted <= exactUpTo) return { total: counted, isEstimate: false };
  const [plan] = await sql(`EXPLAIN (FORMAT JSON) SELECT 1 ${from}`, parameters.values.slice(0, -1));
  const [
    {
      Plan: { "Plan Rows": rows },
    },
  ] = JSON.parse(plan?.[0] ?? "") as [{ Plan: { "Plan Rows": number } }];
  return { total: Math.max(rows, counted), isEstimate: true };
}
