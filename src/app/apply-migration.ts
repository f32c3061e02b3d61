import type { Client } from "pg";
import { recordMigration } from "../db/audit.ts";
import type { Actor } from "../kit/actor.ts";
import { OperatorError } from "../kit/errors.ts";
import type { Definitions } from "../mapping/definition.ts";
import { applyByHand } from "../migration/apply-by-hand.ts";
import { inMigrationTransaction, runSteps, type Step } from "../migration/core-migrations.ts";
import { findPendingByHand, titleOf, type HandMigration } from "../migration/hand-migrations.ts";
import { findInstalled } from "../migration/installed.ts";
import { coreTablesOf, lockTables } from "../migration/lock-tables.ts";
import type { Log } from "../telemetry/log.ts";
import { dueCoreSteps, planChanges, type MigrationPlan, type MigrationTarget } from "./plan-migration.ts";

export interface MigrationReport {
  readonly steps: readonly Step[];
  readonly notes: readonly string[];
  readonly leftAlone: readonly string[];
  readonly durationMs: number;
}

/**
 * Brings the service's own tables to this version, in the transaction of the client.
 *
 * @param actor For the audit trail. Default: the database role.
 * @returns The steps that were done.
 */
export async function applyCoreMigrations(
  client: Client,
  actor: Actor | undefined,
): Promise<readonly Step[]> {
  const steps = await dueCoreSteps(await findInstalled(client));
  await lockTables(client, coreTablesOf(steps));
  await runSteps(client, steps);
  await recordMigration(client, steps, actor);
  return steps;
}

/**
 * Brings the service's own tables, the managed tables and the captures to this version and the
 * definitions: all of it or nothing. Pending migrations by hand come first, each in its own
 * transaction, and stay when a later step fails. Two calls at the same time apply it once.
 *
 * @param allowDestructive Whether data may be lost.
 * @param showsValues Whether an error shows the values of the row that prevents the migration.
 *   Default: false, because the log must not contain them.
 * @param actor For the audit trail. Default: the database role.
 * @throws OperatorError naming the step that failed, or every loss that was not allowed. The
 *   message also names the migrations that stay applied.
 */
export async function applyMigration({
  url,
  definitions,
  byHand = [],
  allowDestructive,
  showsValues = false,
  log,
  actor,
}: MigrationTarget & {
  readonly allowDestructive: boolean;
  readonly showsValues?: boolean;
  readonly log: Log;
  readonly actor?: Actor;
}): Promise<MigrationReport> {
  const startedAt = performance.now();
  const before: Step[] = [];
  const migrate = async (): Promise<MigrationPlan> => {
    if (byHand.length > 0)
      await migrateByHand({ url, byHand, actor, log, onApplied: (...steps) => before.push(...steps) });
    return inMigrationTransaction({
      url,
      isReadOnly: false,
      log,
      async work(client) {
        const planned = await planLocked(client, definitions, allowDestructive);
        await runSteps(client, planned.steps, showsValues);
        await recordMigration(client, planned.steps, actor);
        return planned;
      },
    });
  };
  const {
    steps: made,
    notes,
    leftAlone,
  } = await migrate().catch((error: unknown) => {
    if (before.length === 0) throw error;
    log.warn({ steps: before.map(({ title }) => title) }, "applied before the migration failed, and stays");
    throw error instanceof OperatorError ? withStaying(error, before) : error;
  });
  const steps = [...before, ...made];
  const durationMs = Math.round(performance.now() - startedAt);
  for (const note of notes) log.info({ note }, "migration note");
  for (const object of leftAlone) log.info({ object }, "not changed by the migration");
  log.info({ steps: steps.map(({ title }) => title), durationMs }, "migrated");
  return { steps, notes, leftAlone, durationMs };
}

/**
 * Plans the changes, and locks the tables that they change. Then plans again, because others may
 * write values until a table is locked. These values could be lost, or not fit. So all rows are
 * read a second time while others wait.
 *
 * @throws OperatorError naming every loss that was not allowed, and every impossible change.
 */
async function planLocked(
  client: Client,
  definitions: Definitions,
  allowDestructive: boolean,
): Promise<MigrationPlan> {
  const first = await planChanges(client, definitions);
  refuse(first, allowDestructive);
  if (first.changed.length === 0) return first;
  await lockTables(client, first.changed, { referred: first.referred });
  const planned = await planChanges(client, definitions);
  refuse(planned, allowDestructive);
  const locked = [...first.changed, ...first.referred];
  if ([...planned.changed, ...planned.referred].some((table) => !locked.includes(table)))
    await lockTables(client, planned.changed, { referred: planned.referred });
  return planned;
}

function withStaying(error: OperatorError, before: readonly Step[]): OperatorError {
  const stay = `These were applied first, and stay:\n${listed(before.map(({ title }) => title))}`;
  return new OperatorError(`${stay}\n${error.message}`, { faults: [stay, ...error.faults], cause: error });
}

/**
 * Applies the migrations by hand, and the core migrations before them, which create the table that
 * records them.
 *
 * @param onApplied Gets the steps that were done, each time that some are committed.
 */
async function migrateByHand({
  url,
  byHand,
  actor,
  log,
  onApplied,
}: {
  readonly url: string;
  readonly byHand: readonly HandMigration[];
  readonly actor: Actor | undefined;
  readonly log: Log;
  readonly onApplied: (...steps: readonly Step[]) => void;
}): Promise<void> {
  const { core, pending } = await inMigrationTransaction({
    url,
    isReadOnly: false,
    log,
    async work(client) {
      const due = await findPendingByHand(client, byHand);
      return { core: due.length === 0 ? [] : await applyCoreMigrations(client, actor), pending: due };
    },
  });
  onApplied(...core);
  if (pending.length === 0) return;
  await applyByHand({
    url,
    migrations: byHand,
    log,
    record: (client, migration) => recordMigration(client, [{ title: titleOf(migration) }], actor),
    onApplied: (migration) => onApplied({ title: titleOf(migration), sql: migration.sql }),
  });
}

function refuse({ losses, impossible }: MigrationPlan, allowDestructive: boolean): void {
  if (impossible.length > 0) {
    throw new OperatorError(
      `The existing rows and objects do not allow the migration; nothing was changed:\n${listed(impossible)}`,
    );
  }
  if (losses.length > 0 && !allowDestructive) {
    throw new OperatorError(
      `The migration would lose data or events; nothing was changed:\n${listed(losses)}\n` +
        "Look at it with `svc-admin migrate --plan`, and allow it with `svc-admin migrate --allow-destructive`.",
    );
  }
}

/** Returns the lines as a list for people. */
export function listed(lines: readonly string[]): string {
  return lines.map((line) => `  - ${line}`).join("\n");
}
