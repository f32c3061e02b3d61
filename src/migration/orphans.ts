import type { ClientBase } from "pg";
import type { LiveObject } from "./live-objects.ts";
import { findOwnRows, rowNameOf, type RowChecks } from "./row-checks.ts";
import { clausesOf, type TableClause } from "./statements.ts";
import { counted } from "../kit/counted.ts";
import { quoteName, quoteTable, shortTable } from "../db/names.ts";

/** A column that is to have a foreign key, and the referenced table and column. */
interface Reference {
  readonly table: string;
  readonly column: string;
  readonly target: string;
  readonly targetColumn: string;
}

const referenceClause =
  /^ADD CONSTRAINT "[^"]+" FOREIGN KEY \("([^"]+)"\) REFERENCES ((?:"[^"]+"\.)?"[^"]+")\("([^"]+)"\)/;

/**
 * Counts the rows that new foreign keys would refuse, so that a plan reports them. Also finds
 * unique constraints that no foreign key may reference.
 *
 * @returns A sentence for each foreign key that cannot be made.
 */
export async function findOrphans({
  client,
  statements,
  objects,
}: Omit<RowChecks, "warnings">): Promise<readonly string[]> {
  const clauses = clausesOf(statements);
  // A column that is dropped and added again has no values.
  const isDropped = ({ table, column }: Reference): boolean =>
    clauses.some(
      ({ table: of, clause: { action, kind, name } }) =>
        of === table && action === "drop" && kind === "column" && name === column,
    );
  const references = clauses.flatMap((one) => referenceOf(one) ?? []);
  const sentences: string[] = [];
  for (const reference of references.filter((one) => !isDropped(one))) {
    const sentence = await orphansOf(client, reference, objects);
    if (sentence !== undefined) sentences.push(sentence);
  }
  return sentences;
}

/** Returns the foreign key that a clause of a table's statement adds. */
export function referenceOf({ table, clause: { sql } }: TableClause): Reference | undefined {
  const [, column, place, targetColumn] = referenceClause.exec(sql) ?? [];
  if (column === undefined || place === undefined || targetColumn === undefined) return undefined;
  return { table, column, target: shortTable(place.replaceAll('"', "")), targetColumn };
}

// Types of one category can be compared, such as texts of all lengths. Types of two categories may
// not, while one of them changes.
const endsQuery = `
  SELECT to_regclass($3) IS NULL AS "isNew", own.attname IS NOT NULL AS "isThere",
    own.atttypid = ref.atttypid OR (mine.typcategory = theirs.typcategory AND mine.typcategory IN ('N', 'S')) AS "isComparable",
    (
      SELECT bool_and(NOT indimmediate) FROM pg_index
      WHERE indrelid = ref.attrelid AND indisunique AND indpred IS NULL AND indnkeyatts = 1 AND indkey[0] = ref.attnum
    ) AS "isDeferrable"
  FROM (VALUES (1)) AS one
  LEFT JOIN pg_attribute AS own ON own.attrelid = to_regclass($1) AND own.attname = $2 AND NOT own.attisdropped
  LEFT JOIN pg_attribute AS ref ON ref.attrelid = to_regclass($3) AND ref.attname = $4 AND NOT ref.attisdropped
  LEFT JOIN pg_type AS mine ON mine.oid = own.atttypid
  LEFT JOIN pg_type AS theirs ON theirs.oid = ref.atttypid`;

/** Describes orphans by the key of one row, because the value may be a secret. */
async function orphansOf(
  client: ClientBase,
  { table, column, target, targetColumn }: Reference,
  objects: readonly LiveObject[],
): Promise<string | undefined> {
  const places = [quoteTable(table), column, quoteTable(target), targetColumn];
  const { rows: ends } = await client.query<{
    isNew: boolean;
    isThere: boolean;
    isComparable: boolean | null;
    isDeferrable: boolean | null;
  }>(endsQuery, places);
  const { isNew = false, isThere = false, isComparable = null, isDeferrable } = ends[0] ?? {};
  const start = `The column ${column} of the table ${table} is to refer to ${targetColumn} of the table ${target}, and`;
  if (isDeferrable === true)
    return `${start} what makes that unique is DEFERRABLE: PostgreSQL refuses the reference. Make the constraint again without DEFERRABLE.`;
  if (!isThere || (!isNew && isComparable !== true)) return undefined;
  const value = `own.${quoteName(column)}`;
  const isKnown = isNew
    ? "false"
    : `EXISTS (SELECT FROM ${await findOwnRows(client, target)} AS target WHERE target.${quoteName(targetColumn)} = ${value})`;
  const row = rowNameOf(table, objects);
  const { rows } = await client.query<{ count: number; example: string | null }>(
    `SELECT count(*)::float8 AS count, min(${row ?? "NULL"}) AS example FROM ${await findOwnRows(client, table)} AS own
     WHERE ${value} IS NOT NULL AND NOT ${isKnown}`,
  );
  const { count = 0, example = null } = rows[0] ?? {};
  if (count === 0) return undefined;
  const have = counted(count, "row has", "rows have");
  const shown = example === null ? "" : `, for example the row with ${example}`;
  return `${start} ${have} a value that is not there${shown}. Change the values or add what they refer to first.`;
}
