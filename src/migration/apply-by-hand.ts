import { DatabaseError, type Client } from "pg";
import { quoteName } from "../db/names.ts";
import { codeOf, messageOf, OperatorError } from "../kit/errors.ts";
import {
  clientSettings,
  inMigrationSession,
  inMigrationTransaction,
  transactionSettings,
} from "./core-migrations.ts";
import { watchCaptures } from "./follow-captures.ts";
import { watchRenames } from "./follow-renames.ts";
import { findPendingByHand, handSteps, titleOf, type HandMigration } from "./hand-migrations.ts";
import type { Log } from "../telemetry/log.ts";

/**
 * Applies the migrations by hand that a database lacks, each with its record in its own
 * transaction. Two simultaneous processes apply each migration once.
 *
 * @param record Adds a row to the audit trail, in the migration's transaction.
 * @param onApplied Gets each migration when it is committed.
 * @throws OperatorError for the first migration that fails; earlier ones stay applied.
 */
export async function applyByHand({
  url,
  migrations,
  record,
  onApplied,
  log,
}: {
  readonly url: string;
  readonly migrations: readonly HandMigration[];
  readonly record: (client: Client, migration: HandMigration) => Promise<void>;
  readonly onApplied: (migration: HandMigration) => void;
  readonly log: Log;
}): Promise<void> {
  for (const migration of migrations) {
    const work = async (client: Client): Promise<boolean> => {
      // Another process may have applied it while this one waited.
      if (!(await findPendingByHand(client, migrations)).includes(migration)) return false;
      const follow = await run(client, migration);
      if (!migration.isInTransaction) await client.query("BEGIN");
      // Undoing the settings of the file has reset these too.
      await client.query(transactionSettings());
      await follow();
      await client.query(handSteps(migration).record.sql);
      await record(client, migration);
      if (!migration.isInTransaction) await client.query("COMMIT");
      return true;
    };
    const isApplied = migration.isInTransaction
      ? await inMigrationTransaction({ url, isReadOnly: false, log, work })
      : await inMigrationSession({ url, log, work });
    if (isApplied) onApplied(migration);
  }
}

/**
 * Name of a setting of this transaction only. It is gone when the file has ended the transaction.
 */
const setting = "svc.migration_by_hand";

/**
 * Runs the file, and undoes every SET in it. The embedded database is one session for the whole
 * service, which would otherwise continue without triggers or as another role.
 *
 * @returns A function that records the file's renames.
 */
async function run(client: Client, migration: HandMigration): Promise<() => Promise<void>> {
  const { rows } = await client.query<{ user: string }>('SELECT session_user AS "user"');
  const user = quoteName(rows[0]?.user ?? "");
  // In PGlite 0.5.14, RESET SESSION AUTHORIZATION does not restore the user.
  const undo = `SET SESSION AUTHORIZATION ${user}; RESET ROLE; RESET ALL; ${clientSettings}`;
  const followRenames = await watchRenames(client);
  const followCaptures = await watchCaptures(client);
  try {
    await runFile(client, migration);
  } catch (error) {
    // If the file has ended its transaction, its settings would remain.
    await client.query(`ROLLBACK; ${undo}`).catch(() => undefined);
    throw error;
  }
  await client.query(undo);
  return async () => {
    await followRenames();
    await followCaptures();
  };
}

async function runFile(client: Client, migration: HandMigration): Promise<void> {
  const { isInTransaction, name } = migration;
  try {
    if (isInTransaction) await client.query("SELECT set_config($1, $2, true)", [setting, name]);
    await client.query(handSteps(migration).work.sql);
    // Deferred constraints must be checked with the file's settings.
    if (isInTransaction) await client.query("SET CONSTRAINTS ALL IMMEDIATE");
  } catch (error) {
    throw new OperatorError(`The ${titleOf(migration)} failed${reasonOf(error, isInTransaction)}`, {
      cause: error,
    });
  }
  if (!isInTransaction) return;
  const { rows } = await client.query<{ name: string | null }>("SELECT current_setting($1, true) AS name", [
    setting,
  ]);
  if (rows[0]?.name !== name)
    throw new OperatorError(
      `The ${titleOf(migration)} ends its transaction. It may have done a part of its work, and is not recorded. Take COMMIT and ROLLBACK out of it, and look at the database before the next try.`,
    );
}

const changedHint =
  " The capture trigger of a table learns of a column's new name or type when the file is done. Put the writes first, or into another file.";

/**
 * Returns whether a function of the service failed because a column is missing, or has another
 * type.
 */
function isChanged(error: unknown): boolean {
  const where = error instanceof DatabaseError ? error.where : undefined;
  // The rest of the message may be in another language.
  return ["42703", "42804"].includes(codeOf(error) ?? "") && where?.includes(" svc.") === true;
}

const missingTable = "42P01";
const newDatabaseHint =
  ". In a new database, the mapping files make their tables after it: see docs/mapping.md, Migrations by hand.";

/** Code of a statement that cannot be in a transaction, or not with others. */
const inTransaction = "25001";
const ownFileHint =
  '. Put the statement alone into a file that begins with the line "-- svc: no transaction".';

function reasonOf(error: unknown, isInTransaction: boolean): string {
  const said = `PostgreSQL says: ${messageOf(error)}${codeOf(error) === missingTable ? newDatabaseHint : ""}`;
  const isAlone = codeOf(error) === inTransaction;
  if (isInTransaction)
    return ` and changed nothing. ${said}${isAlone ? ownFileHint : ""}${isChanged(error) ? changedHint : ""}`;
  // `CREATE INDEX CONCURRENTLY` leaves an invalid index behind.
  const hint = isAlone ? "It may have one statement only. " : "";
  return `, and may have left a part of its work behind, such as an invalid index. ${hint}${said}`;
}
