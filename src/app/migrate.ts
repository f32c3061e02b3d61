import { createHash } from "node:crypto";
import type { Client } from "pg";
import type { Actor } from "../kit/actor.ts";
import { recordMigration } from "../db/audit.ts";
import type { Database } from "../db/client.ts";
import {
  findInstalled,
  findInstalledInTransaction,
  type Installed,
  type InstalledResource,
} from "../migration/installed.ts";
import { readColumns, readSchema, readUniques, type LiveSchema } from "../migration/live-tables.ts";
import { planTables } from "../migration/managed-tables.ts";
import {
  coreSteps,
  inMigrationTransaction,
  loadCoreMigrations,
  pendingMigrations,
  runSteps,
  type Step,
} from "../migration/core-migrations.ts";
import { quoteText } from "../db/names.ts";
import type { ValueCheck } from "../migration/value-checks.ts";
import { tableIndexesOf } from "../migration/table-indexes.ts";
import { valueLimitsOf } from "../migration/value-limits.ts";
import { OperatorError } from "../kit/errors.ts";
import { captureBelow, captureOf, captureTriggerNames, removeCapture } from "../events/capture.ts";
import type { Log } from "../telemetry/log.ts";
import type { Definition, Definitions } from "../mapping/definition.ts";
import { checkExistingTable } from "../migration/existing-table.ts";
import { lookupFaults } from "../migration/lookup-tables.ts";
import { columnWishOf, prismaSchemaOf, schemasOf, tableModelOf } from "../mapping/models.ts";

/** The plan of a migration. */
export interface MigrationPlan {
  /** In the order in which they run, in one transaction; empty when nothing is due. */
  readonly steps: readonly Step[];
  /** Data, indexes and constraints that would be lost. Refused unless losses are allowed. */
  readonly losses: readonly string[];
  /** Changes that the existing rows and objects do not allow. Always refused. */
  readonly impossible: readonly string[];
  /** Remarks for the operator. */
  readonly notes: readonly string[];
  /** Objects on the managed tables that somebody else made, or changed by hand. They stay. */
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
}

/**
 * Plans the migration from the live database, and changes nothing.
 *
 * @throws OperatorError listing every mapping that does not fit its existing table.
 */
export async function planMigration({ url, definitions }: Target): Promise<MigrationPlan> {
  return inMigrationTransaction({ url, isReadOnly: true, work: (client) => plan({ client, definitions }) });
}

/**
 * Brings the service's own tables, the managed tables and the captures to this version and the
 * definitions. Does all of it or nothing. Two at once do it once.
 *
 * @param allowDestructive Whether data may be lost.
 * @param actor For the audit trail. Default: the database role.
 * @throws OperatorError naming the step that failed, or every loss that was not allowed.
 */
export async function applyMigration({
  url,
  definitions,
  allowDestructive,
  log,
  actor,
}: Target & {
  readonly allowDestructive: boolean;
  readonly log: Log;
  readonly actor?: Actor;
}): Promise<MigrationReport> {
  const startedAt = performance.now();
  const { steps, notes, leftAlone } = await inMigrationTransaction({
    url,
    isReadOnly: false,
    async work(client) {
      const planned = await plan({ client, definitions });
      refuse(planned, allowDestructive);
      await runSteps(client, planned.steps);
      await recordMigration(client, planned.steps, actor);
      return planned;
    },
  });
  const durationMs = Math.round(performance.now() - startedAt);
  for (const note of notes) log.info({ note }, "migration note");
  for (const object of leftAlone) log.info({ object }, "not changed by the migration");
  log.info({ steps: steps.map(({ title }) => title), durationMs }, "migrated");
  return { steps, notes, leftAlone, durationMs };
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
}: {
  readonly database: Pick<Database, "pool">;
  readonly definitions: Definitions;
}): Promise<readonly string[]> {
  refuseFaults(await lookupFaults(database.pool, definitions));
  const known = await loadCoreMigrations();
  const installed = await findInstalled(database.pool);
  const pending = pendingMigrations(known, installed.migrations).map(({ name }) => `core migration ${name}`);
  const wanted = wantedResources(definitions);
  return [
    ...pending,
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
  const core = coreSteps(pendingMigrations(await loadCoreMigrations(), installed.migrations));
  const live = await readSchema(client, schemasOf(definitions));
  const managed = [...definitions.values()].filter(({ isManaged }) => isManaged);
  const findings = await checkTables({ client, definitions, live });
  const changes = await planTables({
    client,
    schemaText: prismaSchemaOf(definitions),
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
  return {
    steps: [
      ...core,
      ...changes.steps,
      ...wantedResources(definitions).flatMap((resource) => {
        const due = dueOf(resource, installed);
        return due === undefined ? [] : [stepOf(resource, due)];
      }),
      ...removed.map(removeStep),
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

interface WantedResource extends InstalledResource {
  readonly installCapture: readonly string[];
  readonly captureBelow: string;
  /** Empty when the resource declares no triggers. */
  readonly triggerNames: readonly string[];
}

/**
 * Returns the resources as they should be installed. The hash has two halves: the table, and the
 * capture.
 */
function wantedResources(definitions: Definitions): readonly WantedResource[] {
  return [...definitions.values()].map((definition) => {
    const { name, table, isManaged } = definition;
    const capture = captureOf(definition);
    const hash = `${shapeHashOf(definition, definitions)} ${capture.hash}`;
    return {
      name,
      table,
      isManaged,
      hash,
      installCapture: capture.install,
      captureBelow: captureBelow(definition),
      triggerNames: captureTriggerNames(definition),
    };
  });
}

function shapeHashOf(definition: Definition, definitions: Definitions): string {
  const { isManaged, fields } = definition;
  const shape = isManaged
    ? [
        tableModelOf(definition, definitions),
        valueChecksOf(definition),
        // Nothing without any, as before there were any.
        ...(definition.indexes.length > 0 ? [tableIndexesOf(definition)] : []),
      ]
    : fields.map(({ name, type, column, isList }) => [name, type, column, isList]);
  return createHash("sha256").update(JSON.stringify(shape)).digest("hex");
}

function valueChecksOf({ table, fields }: Definition): readonly ValueCheck[] {
  return fields.flatMap(({ column, isList, values }) =>
    values === undefined ? [] : [{ table, column, isList, values }],
  );
}

/** Why a resource needs a step, and which. */
interface Due {
  readonly reason: string;
  /**
   * `capture`: install it again, which locks the table. `new partitions`: give them the TRUNCATE
   * trigger. Programs start without it, since other changes of new partitions are captured.
   */
  readonly what: "capture" | "note" | "new partitions";
}

function dueOf(resource: WantedResource, { resources, triggers }: Installed): Due | undefined {
  const { name, table, isManaged, hash, triggerNames } = resource;
  const last = resources.find((one) => one.name === name);
  if (last === undefined) return { reason: "not installed yet", what: "capture" };
  const live = triggers.filter((one) => one.table === table && triggerNames.includes(one.name));
  const missing = live.flatMap((one) => one.missing);
  const silent = [
    ...(live.length < triggerNames.length ? [table] : []),
    ...new Set(missing.flatMap((one) => (one.isNew ? [] : [one.table]))),
  ];
  // The capture's statements contain the name of the table.
  const isCapture = silent.length > 0 || captureHashOf(last) !== captureHashOf(resource);
  if (last.hash !== hash || last.table !== table || last.isManaged !== isManaged)
    return { reason: "the mapping file changed", what: isCapture ? "capture" : "note" };
  if (silent.length > 0)
    return { reason: `its capture trigger on ${silent.join(", ")} is gone or disabled`, what: "capture" };
  if (missing.length > 0)
    return {
      reason: `capture trigger on ${[...new Set(missing.map((one) => one.table))].join(", ")}`,
      what: "new partitions",
    };
  return undefined;
}

function captureHashOf({ hash }: InstalledResource): string | undefined {
  return hash.split(" ")[1];
}

function removedResources(definitions: Definitions, { resources }: Installed): readonly InstalledResource[] {
  return resources.filter(({ name }) => !definitions.has(name));
}

function stepOf(resource: WantedResource, { what, reason }: Due): Step {
  const { name, table, triggerNames, installCapture } = resource;
  if (what === "note") return { title: `${name}: record the mapping`, sql: noteStatement(resource) };
  if (what === "new partitions") return { title: `${name}: ${reason}`, sql: resource.captureBelow };
  return {
    title: `${name}: ${triggerNames.length === 0 ? "no capture trigger" : `capture trigger on ${table}`}`,
    sql: [...installCapture, noteStatement(resource)].join(";\n"),
  };
}

function noteStatement({ name, table, isManaged, hash }: WantedResource): string {
  const values = [quoteText(name), quoteText(table), String(isManaged), quoteText(hash)].join(", ");
  return (
    `INSERT INTO svc.installed_resources (name, "table", is_managed, hash) VALUES (${values})\n` +
    `ON CONFLICT (name) DO UPDATE SET ("table", is_managed, hash, installed_at) = (excluded."table", excluded.is_managed, excluded.hash, now())`
  );
}

function removeStep({ name }: InstalledResource): Step {
  return {
    title: `${name}: remove the capture trigger`,
    sql: [
      ...removeCapture({ name }),
      `DELETE FROM svc.installed_resources WHERE name = ${quoteText(name)}`,
    ].join(";\n"),
  };
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
