import { setTimeout } from "node:timers/promises";
import type { ClientBase } from "pg";
import { codeOf, OperatorError } from "../kit/errors.ts";
import type { Step } from "./core-migrations.ts";
import { heldByOthers, lockHolders } from "./lock-holders.ts";

/**
 * Time of one try: shorter than `deadlock_timeout` (1 s), after which PostgreSQL fails a statement
 * in a deadlock.
 */
const tryMs = 500;
/** Pause between two tries, in which statements run that waited behind the first. */
const breakMs = 200;
/** The same pause when the role may not lock a table. Uses that last longer are waited for. */
const longUseMs = 1000;
const patienceMs = 30_000;

const [statementTimeout, deadlock] = ["57014", "40P01"];

/** Returns the service's tables that core migrations name, as names for `to_regclass`. */
export function coreTablesOf(steps: readonly Step[]): readonly string[] {
  const named = steps.flatMap(({ sql }) => sql.match(/\bsvc\.[a-z_]+/g) ?? []);
  // Each step records itself in svc.migrations, which starting programs read.
  return [...new Set(named)].filter((name) => name !== "svc.migrations");
}

/**
 * Locks the tables that a migration changes, before its first step. It then holds no table while it
 * waits for another. Otherwise a statement that holds one table and waits for the other would
 * deadlock with it. Processes of the previous version run such statements all the time.
 *
 * Makes several short tries, because all other statements wait behind each try. A long wait, such
 * as for a `pg_dump`, would stop the whole service meanwhile.
 *
 * A role with only the privileges SELECT and TRIGGER may lock no table. The migration then waits
 * until no long transaction blocks it. Only then does creating the trigger wait for its own lock.
 *
 * @param tables Names for `to_regclass`. Leaves out tables that do not exist yet.
 * @param options.referred Tables that may be read meanwhile, in the same form.
 * @param options.patience Time in ms after which there is no other try.
 * @throws OperatorError that names the sessions which hold the tables; no table is then locked.
 */
export async function lockTables(
  client: ClientBase,
  tables: readonly string[],
  {
    referred = [],
    patience = patienceMs,
  }: { readonly referred?: readonly string[]; readonly patience?: number } = {},
): Promise<void> {
  const { rows } = await client.query<{ statement: string | null; mode: string; ids: readonly string[] }>(
    `SELECT mode, CASE WHEN may THEN format('LOCK TABLE %s IN %s MODE', string_agg(oid::regclass::text, ', ' ORDER BY oid), mode) END AS statement,
       array_agg(oid::text) AS ids
     FROM (
       SELECT to_regclass(name)::oid AS oid, min(mode) AS mode FROM (
         SELECT unnest($1::text[]), 'ACCESS EXCLUSIVE' UNION ALL SELECT unnest($2::text[]), 'SHARE ROW EXCLUSIVE'
       ) AS given (name, mode) GROUP BY 1
     ) AS wanted JOIN pg_class USING (oid) CROSS JOIN LATERAL has_table_privilege(oid, 'UPDATE, DELETE, TRUNCATE') AS may
     WHERE relkind IN ('r', 'p') GROUP BY mode, may ORDER BY mode DESC`,
    [tables, referred],
  );
  if (rows.length === 0) return;
  const ids = rows.flatMap((row) => row.ids);
  // Locks the tables first that may be read meanwhile, because the other locks block more.
  const statements = rows.flatMap(({ statement }) => statement ?? []).join(";");
  const unlocked = rows.filter(({ statement }) => statement === null);
  const isQuiet = createQuietCheck(client, {
    changed: unlocked.flatMap(({ mode, ids: own }) => (mode === "ACCESS EXCLUSIVE" ? own : [])),
    all: unlocked.flatMap((row) => row.ids),
  });
  const endsAt = performance.now() + patience;
  while (!((await isQuiet()) && (await tryLock(client, statements, await tryMsFor(client, ids))))) {
    if (performance.now() >= endsAt) throw await busyError(client, ids, patience);
    await setTimeout(unlocked.length > 0 ? longUseMs : breakMs);
  }
}

/**
 * SQL condition on `pg_locks`: on a table with a trigger of a capture, or of a foreign key of the
 * role's own table.
 */
const mayLoseTrigger = `EXISTS (
  SELECT FROM pg_trigger AS trg JOIN pg_proc AS fn ON fn.oid = trg.tgfoid LEFT JOIN pg_class AS other ON other.oid = trg.tgconstrrelid
  WHERE trg.tgrelid = relation AND (fn.pronamespace = to_regnamespace('svc') OR pg_has_role(other.relowner, 'USAGE')))`;

/**
 * Returns a check that no transaction has blocked the migration since the previous check. Readers
 * do not block creating a trigger, but they block dropping one.
 */
function createQuietCheck(
  client: ClientBase,
  { changed, all }: { readonly changed: readonly string[]; readonly all: readonly string[] },
): () => Promise<boolean> {
  let before: readonly string[] | undefined;
  return async () => {
    if (all.length === 0) return true;
    // A VACUUM yields to the creation of a trigger.
    const { rows } = await client.query<{ id: string }>(
      `SELECT DISTINCT virtualtransaction AS id FROM pg_locks WHERE ${heldByOthers} AND ${onTables} AND mode <> 'ShareUpdateExclusiveLock'
         AND (mode NOT IN ('AccessShareLock', 'RowShareLock') OR (relation::text = ANY($2) AND ${mayLoseTrigger}))`,
      [all, changed],
    );
    const now = rows.map(({ id }) => id);
    const isQuiet = now.length === 0 || (before !== undefined && !now.some((id) => before?.includes(id)));
    before = now;
    return isQuiet;
  };
}

/**
 * Returns how long a try waits: longer while a VACUUM holds one of the tables. Autovacuum yields to
 * a statement that has waited for `deadlock_timeout`, and otherwise takes minutes.
 */
async function tryMsFor(client: ClientBase, ids: readonly string[]): Promise<number> {
  const { rows } = await client.query<{ ms: number }>(
    `SELECT setting::int AS ms FROM pg_settings WHERE name = 'deadlock_timeout' AND EXISTS (
       SELECT FROM pg_locks WHERE ${heldByOthers} AND ${onTables} AND mode = 'ShareUpdateExclusiveLock')`,
    [ids],
  );
  return (rows[0]?.ms ?? 0) + tryMs;
}

async function tryLock(client: ClientBase, statements: string, timeoutMs: number): Promise<boolean> {
  await client.query(`SAVEPOINT lock_tables; SET LOCAL statement_timeout = ${timeoutMs}`);
  try {
    // `statement_timeout` limits all locks of a mode together; `lock_timeout` would limit each
    // lock.
    await client.query(statements);
  } catch (error) {
    if (codeOf(error) !== statementTimeout && codeOf(error) !== deadlock) throw error;
    await client.query("ROLLBACK TO SAVEPOINT lock_tables; RELEASE SAVEPOINT lock_tables");
    return false;
  }
  await client.query("SET LOCAL statement_timeout = 0; RELEASE SAVEPOINT lock_tables");
  return true;
}

const onTables = "locktype = 'relation' AND relation::text = ANY($1)";

async function busyError(
  client: ClientBase,
  ids: readonly string[],
  patience: number,
): Promise<OperatorError> {
  const faults = await lockHolders(client, onTables, [ids]);
  const start = `The migration changed nothing: for ${Math.round(patience / 1000)} s there was always another transaction on a table that it changes.`;
  if (faults.length === 0)
    return new OperatorError(`${start} Each of them was short. Try again at a quieter time.`);
  return new OperatorError(
    `${start} These have them now:\n${faults.map((line) => `  - ${line}`).join("\n")}\n` +
      "Try again when they are done, or end one with SELECT pg_terminate_backend(<pid>).",
    { faults },
  );
}
