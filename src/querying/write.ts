import { quoteName, quoteTable } from "../db/names.ts";
import type { ManySql, TextSql } from "../db/text-sql.ts";
import type { Definition, Field, Row } from "../mapping/definition.ts";
import { columnText, createParameters, fromText, whereText, type Parameters } from "./condition-text.ts";
import { isAlways, keyIs, type Condition } from "./condition.ts";
import { readManys, readRecords } from "./read.ts";
import type { Raw, SelectionStatement } from "./selection.ts";
import { parameterOf } from "./values.ts";

/** @param comment Goes behind a statement that writes: see `db/traceparent.ts`. */
export interface WriteOptions {
  readonly sql: TextSql;
  readonly statement: SelectionStatement;
  readonly comment: string;
}

/**
 * Inserts a record and reads it back in the same statement, its relations to one included.
 *
 * @param judge Answered with it: whether the new record meets this condition.
 * @returns Undefined where a trigger or a rule of the table left the record out.
 */
export async function insertRecord(
  data: Row,
  judge: Condition,
  options: WriteOptions,
): Promise<{ readonly raw: Raw; readonly isFit: boolean } | undefined> {
  const [row] = await insertTogether([data], options);
  return row && { raw: row, isFit: await isFit(row, judge, options) };
}

/**
 * How many records one statement inserts. Few sizes, since each is a text that connections keep.
 */
const sizes = [100, 25, 5, 1];

/**
 * Inserts records, and reads them back in their order. One statement inserts those that follow each
 * other and set the same fields.
 *
 * @param most Most records of one statement.
 * @returns Undefined where a trigger or a rule of the table left a record out.
 */
export async function insertRecords(
  many: readonly Row[],
  most: number,
  options: WriteOptions,
): Promise<readonly Raw[] | undefined> {
  const rows: Raw[] = [];
  const shapes = many.map((data) => Object.keys(data).join());
  while (rows.length < many.length) {
    const start = rows.length;
    const end = shapes.findIndex((shape, index) => index > start && shape !== shapes[start]);
    // A record that sets nothing has no list of values, and there cannot be two of them.
    const left = Math.min(shapes[start] === "" ? 1 : most, (end < 0 ? many.length : end) - start);
    const size = sizes.find((one) => one <= left) ?? 1;
    const inserted = await insertTogether(many.slice(start, start + size), options);
    if (inserted.length < size) return undefined;
    rows.push(...inserted);
  }
  return rows;
}

/** @param many Set the same fields. */
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

/** Asked in a statement of its own, which sees the new record. */
async function isFit(
  row: Raw,
  judge: Condition,
  { sql, statement: { root } }: Pick<WriteOptions, "sql" | "statement">,
): Promise<boolean> {
  if (isAlways(judge)) return true;
  const { definition, columns } = root;
  const key = definition.keys.map(({ name }) => row[columns.get(name)?.position ?? -1] as string);
  const parameters = createParameters();
  const condition: Condition = { kind: "all", of: [keyIs(definition, key), judge] };
  const text = `SELECT 1 ${fromText(definition, condition, parameters)}`;
  return (await sql(text, parameters.values)).length > 0;
}

/** Updates the record with the key when it meets the condition. Undefined when there is none. */
export async function updateRecord(
  { key, data, condition }: { readonly key: Condition; readonly data: Row; readonly condition: Condition },
  { sql, statement, comment }: WriteOptions,
): Promise<Raw | undefined> {
  const { definition } = statement.root;
  const parameters = createParameters();
  const sets = definition.fields.flatMap((field) => {
    const value = updatedText(field, data, parameters);
    return value === undefined ? [] : [`${quoteName(field.column)} = ${value}`];
  });
  const where = whereText({ kind: "all", of: [key, condition] }, parameters);
  const write = `UPDATE ${quoteTable(definition.table)} AS t SET ${sets.join(", ")} ${where}`;
  const [row] = await written(write, parameters, { sql, statement, comment });
  return row;
}

/** Deletes the record when it meets the condition. Returns whether there was one. */
export async function deleteRecord(
  definition: Definition,
  condition: Condition,
  { sql, comment }: Pick<WriteOptions, "sql" | "comment">,
): Promise<boolean> {
  const { text, values } = deletion(definition, condition, comment);
  return (await sql(text, values)).length > 0;
}

/**
 * Deletes the records that meet conditions of one shape, each by a statement. Returns whether there
 * was one for each.
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
 * Runs the write and reads what it wrote. Related records are read as they were before the
 * statement. A record that leads back to its own table is therefore read once more: it may show
 * itself.
 */
async function written(
  write: string,
  parameters: Parameters,
  { sql, statement, comment }: WriteOptions,
  count = 1,
): Promise<readonly Raw[]> {
  const { root, columns, from } = statement;
  if (leadsBack(statement)) return writtenAndRead(write, parameters, { sql, statement, comment });
  const table = `${quoteTable(root.definition.table)} AS t`;
  const joins = from.slice(table.length);
  const returned = `WITH t AS (${write} RETURNING t.*) SELECT ${columns} FROM`;
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

async function writtenAndRead(
  write: string,
  parameters: Parameters,
  { sql, statement, comment }: WriteOptions,
): Promise<readonly Raw[]> {
  const { definition } = statement.root;
  const columns = definition.keys.map((key) => columnText("t", key)).join(", ");
  const [key] = await sql(`${write} RETURNING ${columns}${comment}`, parameters.values);
  return key === undefined ? [] : readRecords(sql, statement, { condition: keyIs(definition, key) });
}

/**
 * Whether several new records can be read back by one statement, which sees all of them: no
 * relation leads to another new one.
 */
export function isReadTogether({ root, withManys }: SelectionStatement): boolean {
  return (
    withManys.length === 0 && ![...root.ones.values()].some((one) => hasTable(one, root.definition.table))
  );
}

function leadsBack({ root, aliases }: SelectionStatement): boolean {
  return aliases.size > 1 && [...root.ones.values()].some((one) => hasTable(one, root.definition.table));
}

function hasTable(selection: SelectionStatement["root"], table: string): boolean {
  return (
    selection.definition.table === table || [...selection.ones.values()].some((one) => hasTable(one, table))
  );
}

/** Returns undefined for the column's own default. */
function insertedText(
  field: Field,
  data: Row,
  { isManaged }: Definition,
  parameters: Parameters,
): string | undefined {
  if (field.isGenerated) return undefined;
  if (Object.hasOwn(data, field.name)) return valueText(field, data[field.name], parameters);
  if (field.isUpdatedAt) return "now()";
  if (field.default?.kind === "literal") return valueText(field, field.default.value, parameters);
  // A table that another program made need not have the default of the mapping file.
  return field.default?.kind === "now" && !isManaged ? "now()" : undefined;
}

function updatedText(field: Field, data: Row, parameters: Parameters): string | undefined {
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
