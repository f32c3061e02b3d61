import type { Client } from "pg";
import type { Actor } from "../kit/actor.ts";
import { recordMigration } from "../db/audit.ts";
import type { Database } from "../db/client.ts";
import { partsOfTable, quoteTable } from "../db/names.ts";
import { findInstalled, findInstalledInTransaction, type Installed } from "../migration/installed.ts";
import { readColumns, readSchema, readUniques, type LiveSchema } from "../migration/live-tables.ts";
import { applyByHand } from "../migration/apply-by-hand.ts";
import { appliedByHand, pendingByHand, titleOf, type HandMigration } from "../migration/hand-migrations.ts";
import { planTables } from "../migration/managed-tables.ts";
import {
  coreSteps,
  inMigrationTransaction,
  loadCoreMigrations,
  pendingMigrations,
  runSteps,
  type Step,
} from "../migration/core-migrations.ts";
import { coreTablesOf, lockTables } from "../migration/lock-tables.ts";
import { tableIndexesOf } from "../migration/table-indexes.ts";
import { valueLimitsOf } from "../migration/value-limits.ts";
import { OperatorError } from "../kit/errors.ts";
import type { Log } from "../telemetry/log.ts";
import type { Definition, Definitions } from "../mapping/definition.ts";
import { checkExistingTable } from "../migration/existing-table.ts";
import { lookupFaults } from "../migration/lookup-tables.ts";
import {
  dueOf,
  removedResources,
  removeStep,
  shapeHashOf,
  stepOf,
  valueChecksOf,
  wantedResources,
} from "./wanted-resources.ts";
import { columnWishOf, prismaSchemaOf, schemasOf } from "../mapping/models.ts";

/** The plan of a migration. */
export interface MigrationPlan {
  /** The migrations by hand that come before `steps`, each in a transaction of its own. */
  readonly byHand: readonly HandMigration[];
  /** In the order in which they run, in one transaction; empty when nothing is due. */
  readonly steps: readonly Step[];
  /** Tables that the steps change, as text for `to_regclass`. They are locked before the first. */
  readonly changed: readonly string[];
  /** Data, indexes and constraints that would be lost. Refused unless losses are allowed. */
  readonly losses: readonly string[];
  /** Changes that the existing rows and objects do not allow. Always refused. */
  readonly impossible: readonly string[];
  /** Remarks for the operator. */
  readonly notes: readonly string[];
  /** Objects on the managed tables that others made, or that were changed by hand. They stay. */
  readonly leftAlone: readonly string[];
}

/** The result of a migration. */
export interface MigrationReport {
  readonly steps: readonly Step[];
  readonly notes: readonly string[];
  readonly leftAlone: readonly string[];
  readonly durationMs: number;
}

interface Target {
  readonly url: string;
  readonly definitions: Definitions;
  /** Default: none. */
  readonly byHand?: readonly HandMigration[];
}

/**
 * Plans the migration from the live database, and changes nothing.
 *
 * @throws OperatorError listing every mapping that does not fit its existing table.
 */
export async function planMigration({ url, definitions, byHand = [] }: Target): Promise<MigrationPlan> {
  return inMigrationTransaction({
    url,
    isReadOnly: true,
    async work(client) {
      const pending = byHand.length === 0 ? [] : pendingByHand(byHand, await appliedByHand(client));
      if (pending.length === 0) return plan({ client, definitions });
      const core = await dueCoreSteps(await findInstalledInTransaction(client));
      const planned = await plan({ client, definitions }).then(noted, (error) => planAfter(error, core));
      return { ...planned, byHand: pending };
    },
  });
}

function noted(planned: MigrationPlan): MigrationPlan {
  const note =
    "The changes of the mapping files are those for the tables as they are now. The migrations by hand come first, and may change them.";
  return { ...planned, notes: [note, ...planned.notes] };
}

/** Returns the plan where tables do not fit before the migrations by hand: the core migrations. */
function planAfter(error: unknown, core: readonly Step[]): MigrationPlan {
  if (!(error instanceof OperatorError)) throw error;
  const notes = [`The rest cannot be planned before the migrations by hand are applied. ${error.message}`];
  return { byHand: [], steps: core, changed: [], losses: [], impossible: [], notes, leftAlone: [] };
}

/** Returns the steps of the core migrations that the database lacks. */
async function dueCoreSteps({ migrations }: Installed): Promise<readonly Step[]> {
  return coreSteps(pendingMigrations(await loadCoreMigrations(), migrations));
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
  const steps = await dueCoreSteps(await findInstalledInTransaction(client));
  await lockTables(client, coreTablesOf(steps));
  await runSteps(client, steps);
  await recordMigration(client, steps, actor);
  return steps;
}

/**
 * Brings the service's own tables, the managed tables and the captures to this version and the
 * definitions: all of it or nothing. Pending migrations by hand come first, each in a transaction
 * of its own, and stay when what follows fails. Two at once do it once.
 *
 * @param allowDestructive Whether data may be lost.
 * @param actor For the audit trail. Default: the database role.
 * @throws OperatorError naming the step that failed, or every loss that was not allowed, after what
 *   was applied before.
 */
export async function applyMigration({
  url,
  definitions,
  byHand = [],
  allowDestructive,
  log,
  actor,
}: Target & {
  readonly allowDestructive: boolean;
  readonly log: Log;
  readonly actor?: Actor;
}): Promise<MigrationReport> {
  const startedAt = performance.now();
  const before = byHand.length === 0 ? [] : await migrateByHand({ url, byHand, actor });
  const {
    steps: made,
    notes,
    leftAlone,
  } = await inMigrationTransaction({
    url,
    isReadOnly: false,
    async work(client) {
      const planned = await plan({ client, definitions });
      refuse(planned, allowDestructive);
      await lockTables(client, planned.changed);
      await runSteps(client, planned.steps);
      await recordMigration(client, planned.steps, actor);
      return planned;
    },
  }).catch((error: unknown) => {
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

function withStaying(error: OperatorError, before: readonly Step[]): OperatorError {
  const stay = `These were applied first, and stay:\n${listed(before.map(({ title }) => title))}`;
  return new OperatorError(`${stay}\nNothing else was done. ${error.message}`, {
    faults: [stay, ...error.faults],
    cause: error,
  });
}

/**
 * Applies the migrations by hand, and the core migrations before them, which have their record.
 *
 * @returns The steps that were done.
 */
async function migrateByHand({
  url,
  byHand,
  actor,
}: {
  readonly url: string;
  readonly byHand: readonly HandMigration[];
  readonly actor: Actor | undefined;
}): Promise<readonly Step[]> {
  const { core, pending } = await inMigrationTransaction({
    url,
    isReadOnly: false,
    async work(client) {
      const due = pendingByHand(byHand, await appliedByHand(client));
      if (due.length === 0) return { core: [], pending: due };
      return { core: await applyCoreMigrations(client, actor), pending: due };
    },
  });
  if (pending.length === 0) return core;
  const done = await applyByHand({
    url,
    migrations: byHand,
    record: (client, migration) => recordMigration(client, [{ title: titleOf(migration) }], actor),
  });
  return [...core, ...done.map((migration) => ({ title: titleOf(migration), sql: migration.sql }))];
}

/**
 * Returns why a migration is due, in one query; empty when none is. Compares the record of the last
 * migration and the live capture triggers with what is expected. A restored or recreated table has
 * lost its triggers. Does not compare columns.
 *
 * @throws OperatorError naming every rule that looks into a missing table. Such rules take a second
 *   query.
 */
export async function migrationDue({
  database,
  definitions,
  byHand = [],
}: Omit<Target, "url"> & {
  readonly database: Pick<Database, "pool">;
}): Promise<readonly string[]> {
  const hand = byHand.length === 0 ? [] : pendingByHand(byHand, await appliedByHand(database.pool));
  // They may make the tables that the rules look into.
  if (hand.length === 0) refuseFaults(await lookupFaults(database.pool, definitions));
  const known = await loadCoreMigrations();
  const installed = await findInstalled(database.pool);
  const pending = pendingMigrations(known, installed.migrations).map(({ name }) => `core migration ${name}`);
  const wanted = wantedResources(definitions);
  return [
    ...pending,
    ...hand.map(titleOf),
    ...wanted.flatMap((resource) => {
      const due = dueOf(resource, installed);
      return due === undefined || due.what === "new partitions" ? [] : [`${resource.name}: ${due.reason}`];
    }),
    ...removedResources(definitions, installed).map(({ name }) => `${name}: no longer in the mapping files`),
  ];
}

async function plan({
  client,
  definitions,
}: {
  readonly client: Client;
  readonly definitions: Definitions;
}): Promise<MigrationPlan> {
  const installed = await findInstalledInTransaction(client);
  const core = await dueCoreSteps(installed);
  // The foreign keys to drop may lead to tables that are not mapped any more.
  const before = installed.resources.map(({ table }) => partsOfTable(table).schema);
  const schemas = [...new Set([...schemasOf(definitions), ...before])];
  const live = await readSchema(client, schemas);
  const managed = [...definitions.values()].filter(({ isManaged }) => isManaged);
  const findings = await checkTables({ client, definitions, live });
  const changes = await planTables({
    client,
    schemaText: prismaSchemaOf(definitions, schemas),
    live,
    wanted: managed.map((definition) => ({
      table: definition.table,
      columns: definition.fields.map((field) => ({ name: field.column, wish: columnWishOf(field) })),
      supportsCreate: definition.supportsCreate,
      before: madeBefore(definition, definitions, installed),
    })),
    limits: managed.flatMap(valueLimitsOf),
    checks: managed.flatMap(valueChecksOf),
    indexes: managed.flatMap(tableIndexesOf),
  });
  const removed = removedResources(definitions, installed);
  const due = wantedResources(definitions).flatMap((resource) => {
    const why = dueOf(resource, installed);
    return why === undefined ? [] : [{ resource, why }];
  });
  const changed = due.filter(({ why: { what } }) => what === "capture" || changes.steps.length > 0);
  return {
    byHand: [],
    steps: [
      ...core,
      ...changes.steps,
      ...due.map(({ resource, why }) => stepOf(resource, why)),
      ...removed.map(removeStep),
    ],
    changed: [
      ...coreTablesOf(core),
      ...[...changed.map(({ resource }) => resource), ...removed].map(({ table }) => quoteTable(table)),
    ],
    losses: changes.losses,
    impossible: changes.impossible,
    notes: [...findings, ...changes.notes, ...keptTables(definitions, installed)],
    leftAlone: changes.leftAlone,
  };
}

/**
 * Returns whether the mapping file changed since the last migration of its table; undefined without
 * one.
 */
function madeBefore(
  definition: Definition,
  definitions: Definitions,
  { resources }: Installed,
): "same" | "changed" | undefined {
  const last = resources.find(({ table, isManaged }) => isManaged && table === definition.table);
  if (last === undefined) return undefined;
  return last.hash.split(" ")[0] === shapeHashOf(definition, definitions) ? "same" : "changed";
}

/**
 * Returns notes on the existing tables that are mapped.
 *
 * @throws OperatorError listing every fault.
 */
async function checkTables({
  client,
  definitions,
  live,
}: {
  readonly client: Client;
  readonly definitions: Definitions;
  readonly live: LiveSchema;
}): Promise<readonly string[]> {
  const all = [...definitions.values()];
  const existing = all.filter(({ isManaged }) => !isManaged);
  const tables = existing.map(({ table }) => table);
  const columns = await readColumns(client, tables);
  const uniques = await readUniques(client, tables);
  const findings = existing.map((definition) =>
    checkExistingTable({
      definition,
      relations: live.relations,
      columns: columns.filter(({ table }) => table === definition.table),
      uniques: uniques.filter(({ table }) => table === definition.table),
    }),
  );
  const faults = [
    ...findings.flatMap((finding) => finding.faults),
    ...all.filter(({ isManaged }) => isManaged).flatMap((definition) => inTheWay(definition, live)),
    ...(await lookupFaults(client, definitions)),
  ];
  refuseFaults(faults);
  return findings.flatMap((finding) => finding.notes);
}

function refuseFaults(faults: readonly string[]): void {
  if (faults.length > 0)
    throw new OperatorError(
      `The mapping files do not fit the database:\n${faults.map((line) => `  ${line}`).join("\n")}`,
      { faults },
    );
}

function inTheWay({ name: resource, table, remark }: Definition, live: LiveSchema): readonly string[] {
  const found = live.relations.find(({ name }) => name === table);
  if (found === undefined || found.kind === "table") return [];
  const message = `"${table}" is a ${found.kind}, not a table; give the resource another table`;
  return [remark([resource === table ? "name" : "table"], message)];
}

/** Returns notes on tables that the service made and that no resource uses any more. */
function keptTables(definitions: Definitions, { resources }: Installed): readonly string[] {
  const inUse = new Set([...definitions.values()].map(({ table }) => table));
  return resources
    .filter(({ isManaged, table }) => isManaged && !inUse.has(table))
    .map(({ name, table }) => {
      const now = definitions.get(name)?.table;
      const change = now === undefined ? "is not mapped any more" : `is on the table ${now} now`;
      return `The table ${table} of the resource ${name}, which ${change}, is kept.`;
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
      `The migration would lose data; nothing was changed:\n${listed(losses)}\n` +
        "Look at it with `svc-admin migrate --plan`, and allow it with `svc-admin migrate --allow-destructive`.",
    );
  }
}

function listed(lines: readonly string[]): string {
  return lines.map((line) => `  - ${line}`).join("\n");
}
