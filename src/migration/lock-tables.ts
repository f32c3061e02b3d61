import { setTimeout } from "node:timers/promises";
import type { ClientBase } from "pg";
import { codeOf } from "../kit/errors.ts";
import type { Step } from "./core-migrations.ts";

/** Shorter than `deadlock_timeout` (1 s), after which PostgreSQL fails a statement. */
const tryMs = 500;
/** What has waited behind a try goes on meanwhile. */
const breakMs = 200;
/** After it, each step waits for its own locks. */
const patienceMs = 15_000;

const statementTimeout = "57014";

/** Returns the service's tables that core migrations name, as text for `to_regclass`. */
export function coreTablesOf(steps: readonly Step[]): readonly string[] {
  const named = steps.flatMap(({ sql }) => sql.match(/\bsvc\.[a-z_]+/g) ?? []);
  // Each step notes itself in svc.migrations, which programs read that start.
  return [...new Set(named)].filter((name) => name !== "svc.migrations");
}

/**
 * Locks the tables that a migration changes, before its first step. So it holds none while it waits
 * for another. Statements that have one of the two and want the other are in a deadlock with it.
 * The processes of the version before run such statements all the time.
 *
 * Several short tries, since all others wait behind each. Without any that succeeded, nothing is
 * locked and nothing thrown.
 *
 * @param tables As text for `to_regclass`. Those that are not there yet, and those that the role
 *   may not lock, are left out.
 */
export async function lockTables(client: ClientBase, tables: readonly string[]): Promise<void> {
  const { rows } = await client.query<{ list: string | null }>(
    `SELECT string_agg(oid::regclass::text, ', ' ORDER BY oid) AS list FROM pg_class
     WHERE oid = ANY(SELECT to_regclass(name) FROM unnest($1::text[]) AS name) AND relkind IN ('r', 'p')
       AND has_table_privilege(oid, 'UPDATE, DELETE, TRUNCATE')`,
    [tables],
  );
  const list = rows[0]?.list ?? undefined;
  if (list === undefined) return;
  const endsAt = performance.now() + patienceMs;
  while (!(await tryLock(client, list)) && performance.now() < endsAt) await setTimeout(breakMs);
}

async function tryLock(client: ClientBase, list: string): Promise<boolean> {
  await client.query(`SAVEPOINT lock_tables; SET LOCAL statement_timeout = ${tryMs}`);
  try {
    // The time-out is that of all the locks together, and `lock_timeout` would be that of each.
    await client.query(`LOCK TABLE ${list} IN ACCESS EXCLUSIVE MODE`);
  } catch (error) {
    if (codeOf(error) !== statementTimeout) throw error;
    await client.query("ROLLBACK TO SAVEPOINT lock_tables; RELEASE SAVEPOINT lock_tables");
    return false;
  }
  await client.query("SET LOCAL statement_timeout = 0; RELEASE SAVEPOINT lock_tables");
  return true;
}
