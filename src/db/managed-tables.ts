import type { Client } from "pg";
import type { LiveSchema } from "./live-tables.ts";
import type { Step } from "./migrate.ts";
import { tablesSchema } from "./names.ts";
import { compareSchema } from "./schema-engine.ts";
import { countBroken, type ValueLimit } from "./value-limits.ts";

/** What brings the managed tables to the models, and what speaks against it. */
export interface TablesPlan {
  readonly steps: readonly Step[];
  /** What would be lost; each a sentence. */
  readonly losses: readonly string[];
  /** What the rows that are there do not allow. */
  readonly impossible: readonly string[];
  /** What might fail, without loss. */
  readonly notes: readonly string[];
}

const nothing: TablesPlan = { steps: [], losses: [], impossible: [], notes: [] };

/** The engine's warnings that tell of a possible failure and not of a loss: the transaction undoes what fails. Any other is a loss. */
const harmless = /^(A unique constraint covering|The primary key for)/;

/**
 * Plans the changes of the managed tables. Every other table and every enum type is kept out of the engine's sight.
 *
 * @param managed Tables that may be made and changed.
 * @param limits What the values of their columns must keep to.
 * @param foreign Those of them that exist though this service did not make them: a change of one counts as a loss.
 */
export async function planTables({
  client,
  schemaText,
  live,
  managed,
  limits,
  foreign,
}: {
  readonly client: Client;
  readonly schemaText: string;
  readonly live: LiveSchema;
  readonly managed: readonly string[];
  readonly limits: readonly ValueLimit[];
  readonly foreign: readonly string[];
}): Promise<TablesPlan> {
  if (managed.length === 0) return nothing;
  const compareWithout = (hidden: readonly string[]): ReturnType<typeof compareSchema> =>
    compareSchema({
      client,
      schemaText,
      externalTables: hidden.map(qualified),
      externalEnums: live.enums.map(qualified),
    });
  const others = live.relations.map(({ name }) => name).filter((name) => !managed.includes(name));

  const { statements, warnings, impossible } = await compareWithout(others);
  if (statements.length === 0) return nothing;
  const changed: string[] = [];
  for (const table of foreign) {
    const rest = await compareWithout([...others, table]);
    if (rest.statements.join(";") !== statements.join(";")) changed.push(table);
  }
  const narrowed = await findNarrowed({ client, limits, warnings });
  return {
    steps: statements.map(repaired).map((sql) => ({ title: titleOf(sql), sql })),
    losses: [
      ...changed.map(
        (table) =>
          `The table ${table} exists and was not made by this service, which would change it. Say "managed: false" in its mapping file to leave it as it is.`,
      ),
      ...warnings.filter((warning) => !harmless.test(warning) && !narrowed.settled.includes(warning)),
    ],
    impossible: [...impossible, ...narrowed.impossible],
    notes: warnings.filter((warning) => harmless.test(warning)),
  };
}

const cast = /^You are about to alter the column `(.+)` on the `(.+)` table,.* will be cast from /s;

/**
 * Looks at the values where the engine warns of a cast, which it says of every narrower type: some cannot be cast at all, flag or no flag,
 * and where all fit nothing is lost.
 */
async function findNarrowed({
  client,
  limits,
  warnings,
}: {
  readonly client: Client;
  readonly limits: readonly ValueLimit[];
  readonly warnings: readonly string[];
}): Promise<{ readonly impossible: readonly string[]; readonly settled: readonly string[] }> {
  const impossible: string[] = [];
  const settled: string[] = [];
  for (const warning of warnings) {
    const [, column, table] = cast.exec(warning) ?? [];
    const limit = limits.find((one) => one.table === table && one.column === column);
    if (limit === undefined) continue;
    const count = await countBroken(client, limit);
    if (count > 0 || limit.isLossless) settled.push(warning);
    if (count > 0) impossible.push(tooWide(limit, count));
  }
  return { impossible, settled };
}

function tooWide({ table, column, expected }: ValueLimit, count: number): string {
  const rows = count === 1 ? "1 row has" : `${count} rows have`;
  return `The column ${column} of the table ${table} is to hold ${expected}, and ${rows} a value beyond that. Mend the values first; none is cut.`;
}

function qualified(name: string): string {
  return `${tablesSchema}.${name}`;
}

/** The whole of the SQL in one line, except for a new table's columns. */
function titleOf(sql: string): string {
  const line = sql.replace(/\s+/g, " ");
  return /^CREATE TABLE (?:"(?:[^"]|"")*"\.?)+/.exec(line)?.[0] ?? line;
}

/**
 * The engine widens a counting Int key by `SET DATA TYPE BIGSERIAL`, which is no type that a column can be changed to, and would
 * leave its sequence ending at 2147483647.
 */
function repaired(sql: string): string {
  const table = /^ALTER TABLE ("(?:[^"]|"")+")/.exec(sql)?.[1];
  const widened = [...sql.matchAll(/ALTER COLUMN ("(?:[^"]|"")+") SET DATA TYPE BIGSERIAL/g)];
  if (table === undefined || widened.length === 0) return sql;
  const sequences = widened.map(
    ([, column]) => `ALTER SEQUENCE ${sequenceOf(table, column ?? "")} AS bigint`,
  );
  return [sql.replaceAll("SET DATA TYPE BIGSERIAL", "SET DATA TYPE BIGINT"), ...sequences].join(";\n");
}

/** The name that the engine gave it, which is PostgreSQL's own for a serial column. */
function sequenceOf(table: string, column: string): string {
  return `"${table.slice(1, -1)}_${column.slice(1, -1)}_seq"`;
}
