import { quoteName, quoteTable } from "../db/names.ts";
import type { ManySql, TextSql } from "../db/text-sql.ts";
import type { Definition, Field, Row } from "../mapping/definition.ts";
import { columnsText, createParameters, fromText, whereText, type Parameters } from "./condition-text.ts";
import { allOf, isAlways, keyIs, keyIsOneOf, type Condition } from "./condition.ts";
import { readManys, readRecords } from "./read.ts";
import type { Raw, SelectionStatement } from "./selection.ts";
import { parameterOf } from "./values.ts";

/**
 * Options of writes.
 *
 * @param comment Text behind a statement that writes: see `db/traceparent.ts`.
 */
export interface WriteOptions {
  readonly sql: TextSql;
  readonly statement: SelectionStatement;
  readonly comment: string;
}

/**
 * Inserts a record and reads it back in the same statement, its relations to one included.
 *
 * @param judge Condition; the result tells whether the new record meets it.
 * @returns Undefined when a trigger or a rule of the table left the record out.
 */
export async function insertRecord(
  data: Row,
  judge: Condition,
  options: WriteOptions,
): Promise<{ readonly raw: Raw; readonly isFit: boolean } | undefined> {
  const [row] = await insertTogether([data], options);
  return row && { raw: row, isFit: await areFit([row], judge, options) };
}

/**
 * Numbers of records that one statement inserts. There are few sizes, because each is a text that
 * connections keep.
 */
const sizes = [100, 25, 5, 1];

/**
 * Inserts records, and reads them back in their order. One statement inserts consecutive records
 * that set the same fields.
 *
 * @param most Limit of the records of one statement.
 * @param judge Condition of each new record.
 * @returns Undefined when one does not meet the condition. Undefined also when a trigger or a rule
 *   of the table left out or added a record.
 */
export async function insertRecords(
  many: readonly Row[],
  { most, judge }: { readonly most: number; readonly judge: Condition },
  options: WriteOptions,
): Promise<readonly Raw[] | undefined> {
  const rows: Raw[] = [];
  const shapes = many.map((data) => Object.keys(data).join());
  while (rows.length < many.length) {
    const start = rows.length;
    const end = shapes.findIndex((shape, index) => index > start && shape !== shapes[start]);
    // A record without values has no list of values, so it needs a statement of its own.
    const left = Math.min(shapes[start] === "" ? 1 : most, (end < 0 ? many.length : end) - start);
    const size = sizes.find((one) => one <= left) ?? 1;
    const inserted = await insertTogether(many.slice(start, start + size), options);
    if (inserted.length !== size || !(await areFit(inserted, judge, options))) return undefined;
    rows.push(...inserted);
  }
  return rows;
}

/** @param many Records that set the same fields. */
async function insertTogether(many: readonly Row[], options: WriteOptions): Promise<readonly Raw[]> {
  const { definition } = options.statement.root;
  const parameters = createParameters();
  const lists = many.map((data) =>
    definition.fields.flatMap((field) => {
      const value = insertedText(field, data, definition, parameters);
      return value === undefined ? [] : [[quoteName(field.column), value] as const];
    }),
  );
  const names = (lists[0] ?? []).map(([name]) => name).join(", ");
  const values = lists.map((columns) => `(${columns.map(([, value]) => value).join(", ")})`);
  const source = names === "" ? "DEFAULT VALUES" : `(${names}) VALUES ${values.join(", ")}`;
  const write = `INSERT INTO ${quoteTable(definition.table)} AS t ${source}`;
  return written(write, parameters, options, many.length);
}

/**
 * Returns whether all new records meet the condition, by a statement of its own, which sees them.
 */
async function areFit(
  rows: readonly Raw[],
  judge: Condition,
  { sql, statement: { root } }: Pick<WriteOptions, "sql" | "statement">,
): Promise<boolean> {
  if (isAlways(judge)) return true;
  const { definition, columns } = root;
  const keys = rows.map((row) =>
    definition.keys.map(({ name }) => row[columns.get(name)?.position ?? -1] as string),
  );
  const parameters = createParameters();
  const condition = allOf([keyIsOneOf(definition, keys), judge]);
  const text = `SELECT 1 ${fromText(definition, condition, parameters)}`;
  return (await sql(text, parameters.values)).length === rows.length;
}

/**
 * Updates the record with the key when it meets the condition. Returns undefined without such a
 * record.
 */
export async function updateRecord(
  { key, data, condition }: { readonly key: Condition; readonly data: Row; readonly condition: Condition },
  { sql, statement, comment }: WriteOptions,
): Promise<Raw | undefined> {
  const { definition } = statement.root;
  const parameters = createParameters();
  const sets = definition.fields.flatMap((field) => {
    const value = writtenText(field, data, parameters);
    const kept =
      definition.isManaged || value === undefined ? value : keptText(field, data[field.name], value);
    return kept === undefined ? [] : [`${quoteName(field.column)} = ${kept}`];
  });
  const where = whereText({ kind: "all", of: [key, condition] }, parameters);
  const write = `UPDATE ${quoteTable(definition.table)} AS t SET ${sets.join(", ")} ${where}`;
  const [row] = await written(write, parameters, { sql, statement, comment });
  return row;
}

/**
 * Writes the new value of a column of an existing table. The stored value stays when the new one is
 * what answers show of it: a time in milliseconds, or no items for a list that is NULL. A client
 * that sends a record back must change nothing.
 */
function keptText(field: Field, value: unknown, text: string): string {
  const column = columnsText("t", [field]);
  if (Array.isArray(value) && value.length === 0 && field.isList)
    return `CASE WHEN ${column} IS NULL THEN ${column} ELSE ${text} END`;
  if (field.type !== "DateTime" || field.isList || value === undefined) return text;
  return `CASE WHEN date_trunc('milliseconds', ${column}) = ${text} THEN ${column} ELSE ${text} END`;
}

/** Deletes the record when it meets the condition. Returns whether there was such a record. */
export async function deleteRecord(
  definition: Definition,
  condition: Condition,
  { sql, comment }: Pick<WriteOptions, "sql" | "comment">,
): Promise<boolean> {
  const { text, values } = deletion(definition, condition, comment);
  return (await sql(text, values)).length > 0;
}

/**
 * Deletes the record where a trigger may leave the delete out. Returns true also when the trigger
 * has changed the record instead, in this transaction.
 */
export async function deleteOrChange(
  definition: Definition,
  { key, condition }: { readonly key: Condition; readonly condition: Condition },
  { sql, comment }: Pick<WriteOptions, "sql" | "comment">,
): Promise<boolean> {
  const before = createParameters();
  const [row] = await sql(
    `SELECT t.tableoid, t.ctid ${fromText(definition, condition, before)}`,
    before.values,
  );
  if (row === undefined) return false;
  if (await deleteRecord(definition, condition, { sql, comment })) return true;
  const after = createParameters();
  const from = fromText(definition, key, after);
  const place = row.map((value) => after.add(value)).join(", ");
  // The transaction must have written it, because others may change it as well. A trigger with
  // an EXCEPTION writes in a subtransaction, which has its own id. Of unfinished transactions,
  // only the own rows are visible.
  const own = "(pg_current_xact_id()::text::bigint >> 32 << 32) + t.xmin::text::bigint";
  const isChanged = `CASE WHEN (t.tableoid, t.ctid) IS DISTINCT FROM (${place})
    THEN pg_xact_status((${own})::text::xid8) = 'in progress' END`;
  return (await sql(`SELECT 1 ${from} AND ${isChanged}`, after.values)).length > 0;
}

/**
 * Deletes the records that meet conditions of one shape, with a statement for each. Returns whether
 * each one existed.
 */
export async function deleteRecords(
  definition: Definition,
  conditions: readonly Condition[],
  { sql, comment }: { readonly sql: ManySql; readonly comment: string },
): Promise<boolean> {
  const deletions = conditions.map((condition) => deletion(definition, condition, comment));
  const lists = deletions.map(({ values }) => values);
  return (await sql(deletions[0]?.text ?? "", lists)).every((rows) => rows.length > 0);
}

function deletion(
  definition: Definition,
  condition: Condition,
  comment: string,
): { readonly text: string; readonly values: readonly unknown[] } {
  const parameters = createParameters();
  const text = `DELETE ${fromText(definition, condition, parameters)} RETURNING 1${comment}`;
  return { text, values: parameters.values };
}

/**
 * Runs the write and reads the written record. Related records are read as they were before the
 * statement. A record with a path back to its own table is therefore read again, because it may
 * show itself.
 */
async function written(
  write: string,
  parameters: Parameters,
  { sql, statement, comment }: WriteOptions,
  count = 1,
): Promise<readonly Raw[]> {
  const { columns, from } = statement;
  const { definition } = statement.root;
  if (leadsBack(statement)) {
    const keys = columnsText("t", definition.keys);
    const [key] = await sql(`${write} RETURNING ${keys}${comment}`, parameters.values);
    return key === undefined ? [] : readRecords(sql, statement, { condition: keyIs(definition, key) });
  }
  const table = `${quoteTable(definition.table)} AS t`;
  const joins = from.slice(table.length);
  // Not `t.*`: svc need not be allowed to read the columns that no field has.
  const own = columnsText("t", definition.fields);
  const returned = `WITH t AS (${write} RETURNING ${own}) SELECT ${columns} FROM`;
  const text =
    from === table
      ? `${write} RETURNING ${columns}${comment}`
      : count === 1
        ? `${returned} t${joins}${comment}`
        : // A join may change the order.
          `${returned} (SELECT *, row_number() OVER () AS svc_place FROM t) AS t${joins} ORDER BY t.svc_place${comment}`;
  const rows: Raw[] = await sql(text, parameters.values);
  await readManys(sql, statement, rows);
  return rows;
}

/**
 * Returns whether one statement can read several new records back and see all of them: no relation
 * leads to another new record.
 */
export function isReadTogether(statement: SelectionStatement): boolean {
  return statement.withManys.length === 0 && !leadsBack(statement);
}

function leadsBack({ root }: SelectionStatement): boolean {
  return [...root.ones.values()].some((one) => hasTable(one, root.definition.table));
}

function hasTable(selection: SelectionStatement["root"], table: string): boolean {
  return (
    selection.definition.table === table || [...selection.ones.values()].some((one) => hasTable(one, table))
  );
}

/** Returns the value to insert; undefined for the column's own default. */
function insertedText(
  field: Field,
  data: Row,
  { isManaged }: Definition,
  parameters: Parameters,
): string | undefined {
  const value = writtenText(field, data, parameters);
  if (value !== undefined || field.isGenerated) return value;
  if (field.default?.kind === "literal") return valueText(field, field.default.value, parameters);
  // A table of another program need not have the default of the mapping file.
  return field.default?.kind === "now" && !isManaged ? "now()" : undefined;
}

/** Returns the value that every write sets; undefined when there is none. */
function writtenText(field: Field, data: Row, parameters: Parameters): string | undefined {
  if (field.isGenerated) return undefined;
  if (Object.hasOwn(data, field.name)) return valueText(field, data[field.name], parameters);
  return field.isUpdatedAt ? "now()" : undefined;
}

function valueText(field: Field, value: unknown, parameters: Parameters): string {
  const encoded = parameterOf(field, value);
  const parameter = encoded === undefined && typeof value === "string" ? value : encoded;
  if (parameter === undefined) throw new Error(`${field.name}: no ${field.type} can be made of the value`);
  return parameters.add(parameter);
}
