import type { Client } from "pg";
import { partsOfTable, quoteName, quoteTable } from "../db/names.ts";
import { counted } from "../kit/counted.ts";
import { OperatorError } from "../kit/errors.ts";
import type { Definition, Definitions } from "../mapping/definition.ts";
import { columnWishOf, prismaSchemaOf, schemasOf } from "../mapping/models.ts";
import {
  coreSteps,
  inMigrationTransaction,
  loadCoreMigrations,
  pendingMigrations,
  type Step,
} from "../migration/core-migrations.ts";
import { checkExistingTables } from "../migration/existing-table.ts";
import { findPendingByHand, type HandMigration } from "../migration/hand-migrations.ts";
import {
  findInstalled,
  findUndelivered,
  type Installed,
  type InstalledResource,
} from "../migration/installed.ts";
import { readSchema, type LiveSchema } from "../migration/live-tables.ts";
import { coreTablesOf } from "../migration/lock-tables.ts";
import { lookupFaults } from "../migration/lookup-tables.ts";
import { planTables, type TablesPlan } from "../migration/managed-tables.ts";
import { tableIndexesOf } from "../migration/table-indexes.ts";
import { valueLimitsOf } from "../migration/value-limits.ts";
import {
  dueOf,
  removedResources,
  removeStep,
  shapeHashOf,
  stepOf,
  valueChecksOf,
  wantedResources,
  type Due,
} from "./wanted-resources.ts";

export interface MigrationPlan extends Pick<TablesPlan, "losses" | "impossible" | "notes" | "leftAlone"> {
  /** Migrations by hand, which run before `steps`, each in its own transaction. */
  readonly byHand: readonly HandMigration[];
  /** Steps in the order in which they run, in one transaction; empty when no migration is due. */
  readonly steps: readonly Step[];
  /** The core migrations among the steps, which come first. */
  readonly core: readonly Step[];
  /** Tables that the steps change, as text for `to_regclass`. They are locked before the first. */
  readonly changed: readonly string[];
  /** Tables that new foreign keys reference, in the same form. Locked against writers only. */
  readonly referred: readonly string[];
}

/** The database and its wanted state. */
export interface MigrationTarget {
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
export async function planMigration({
  url,
  definitions,
  byHand = [],
}: MigrationTarget): Promise<MigrationPlan> {
  return inMigrationTransaction({
    url,
    isReadOnly: true,
    async work(client) {
      const pending = await findPendingByHand(client, byHand);
      if (pending.length === 0) return planChanges(client, definitions);
      const core = await dueCoreSteps(await findInstalled(client));
      const planned = await planChanges(client, definitions).then(
        (one) => (one.impossible.length > 0 ? planAfter(one.impossible.join(" "), core) : beforeHand(one)),
        (error: unknown) => {
          if (!(error instanceof OperatorError)) throw error;
          return planAfter(error.message, core);
        },
      );
      return { ...planned, byHand: pending };
    },
  });
}

/**
 * Returns the plan for the tables before the migrations by hand. It only has the core migrations if
 * a change is a loss or changes a type: the migrations by hand may rename a column that it drops.
 */
function beforeHand(planned: MigrationPlan): MigrationPlan {
  const { core, steps, losses, notes } = planned;
  const takes = losses.length > 0 || steps.some((step) => !core.includes(step) && mayLose(step));
  const note = takes
    ? "The changes of the mapping files are left out: they would take away what the migrations by hand may rename or keep. svc-admin migrate plans them when these are applied, and so does svc-admin migrate --plan then."
    : "The changes of the mapping files are those for the tables as they are now. The migrations by hand come first, and may change them.";
  return { ...planned, steps: takes ? core : steps, notes: [note, ...notes] };
}

/** Returns whether a step may lose values that are written after the plan. */
export function mayLose({ sql }: Step): boolean {
  return sql.includes("DROP COLUMN ") || sql.includes(" SET DATA TYPE ");
}

/**
 * Returns the plan of only the core migrations, when tables or rows do not fit before the
 * migrations by hand.
 */
function planAfter(reason: string, core: readonly Step[]): MigrationPlan {
  const notes = [`The rest cannot be planned before the migrations by hand are applied. ${reason}`];
  const none = { byHand: [], changed: [], referred: [], losses: [], impossible: [], leftAlone: [] };
  return { ...none, steps: core, core, notes };
}

/** Returns the steps of the core migrations that the database lacks. */
export async function dueCoreSteps({ migrations }: Installed): Promise<readonly Step[]> {
  return coreSteps(pendingMigrations(await loadCoreMigrations(), migrations));
}

/**
 * PL/pgSQL keeps the types of columns that a session first saw in a function. The writes of that
 * session would fail until it ends.
 */
const retyped: Due = { reason: "the type of a column changes", what: "capture" };

/** Plans the changes of the core migrations and the mapping files, in the client's transaction. */
export async function planChanges(client: Client, definitions: Definitions): Promise<MigrationPlan> {
  const installed = await findInstalled(client);
  const core = await dueCoreSteps(installed);
  // The foreign keys to drop may reference tables that are not mapped any more.
  const before = installed.resources.map(({ table }) => partsOfTable(table).schema);
  const schemas = [...new Set([...schemasOf(definitions), ...before])];
  const live = await readSchema(client, schemas);
  const managed = [...definitions.values()].filter(({ isManaged }) => isManaged);
  const findings = await checkTables(client, definitions, live);
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
    const isRetyped = resource.triggerNames.length > 0 && changes.retyped.includes(resource.table);
    const why = isRetyped ? retyped : dueOf(resource, installed);
    return why === undefined ? [] : [{ resource, why }];
  });
  const changed = due.filter(({ why: { what } }) => what === "capture" || changes.steps.length > 0);
  // A resource may leave its table, which then loses the capture.
  const last = installed.resources.filter(
    ({ name }) => !definitions.has(name) || changed.some(({ resource }) => resource.name === name),
  );
  return {
    byHand: [],
    core,
    steps: [
      ...core,
      ...changes.steps,
      ...due.map(({ resource, why }) => stepOf(resource, why)),
      ...removed.map(removeStep),
    ],
    changed: [
      ...coreTablesOf(core),
      ...[...changed.map(({ resource }) => resource), ...last].map(({ table }) => quoteTable(table)),
      ...changes.ends.changed,
    ],
    referred: changes.ends.referred,
    losses: [...changes.losses, ...(await lostEvents(client, removed, installed))],
    impossible: changes.impossible,
    notes: [
      ...findings,
      ...changes.notes,
      ...keptTables(definitions, installed),
      ...(await findUndelivered(client)).map(undeliveredNote),
    ],
    leftAlone: changes.leftAlone,
  };
}

/**
 * Returns a loss for each resource that no file defines any more, and active webhooks get. Without
 * its capture, running processes accept changes that send no event. The folder may be wrong.
 */
async function lostEvents(
  client: Client,
  removed: readonly InstalledResource[],
  { triggers }: Installed,
): Promise<readonly string[]> {
  const captured = removed.filter(({ table }) => triggers.some((trigger) => trigger.table === table));
  if (captured.length === 0) return [];
  const { rows } = await client.query<{ resource: string; count: number }>(
    `SELECT removed.resource, count(*)::int AS count FROM unnest($1::text[]) AS removed (resource)
     JOIN svc.subscriptions AS webhook ON webhook.is_active AND webhook.resource IN (removed.resource, '*')
     GROUP BY removed.resource ORDER BY removed.resource`,
    [captured.map(({ name }) => name)],
  );
  return rows.map(
    ({ resource, count }) =>
      `No mapping file has the resource ${resource} any more: ${counted(count, "active webhook of it or of * gets", "active webhooks of it or of * get")} no more events of it. Is SVC_CONFIG_DIR the right folder?`,
  );
}

/**
 * Returns whether the mapping file changed since the last migration of its table; undefined without
 * such a migration.
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
async function checkTables(
  client: Client,
  definitions: Definitions,
  live: LiveSchema,
): Promise<readonly string[]> {
  const all = [...definitions.values()];
  const existing = all.filter(({ isManaged }) => !isManaged);
  const findings = await checkExistingTables(client, existing, live.relations);
  const faults = [
    ...findings.flatMap((finding) => finding.faults),
    ...all.filter(({ isManaged }) => isManaged).flatMap((definition) => inTheWay(definition, live)),
    ...(await lookupFaults(client, definitions)),
  ];
  refuseFaults(faults);
  return findings.flatMap((finding) => finding.notes);
}

/** @throws OperatorError where there are any faults. */
export function refuseFaults(faults: readonly string[]): void {
  if (faults.length > 0)
    throw new OperatorError(
      `The mapping files do not fit the database:\n${faults.map((line) => `  ${line}`).join("\n")}`,
      { faults },
    );
}

function inTheWay({ name: resource, table, remark }: Definition, live: LiveSchema): readonly string[] {
  const found = live.relations.find(({ name }) => name === table);
  const path = [resource === table ? "name" : "table"];
  if (found === undefined) return [];
  if (found.kind !== "table")
    return [remark(path, `"${table}" is a ${found.kind}, not a table; give the resource another table`)];
  if (found.closed === null) return [];
  // The schema engine sees no columns of such a table, and would create all of them again.
  const { owner, role } = found.closed;
  const [place, to] = [quoteTable(table), quoteName(role)];
  return [
    remark(
      path,
      `the table "${table}" belongs to the role ${owner}, and ${role}, which migrates, may not read it: it needs ALTER TABLE ${place} OWNER TO ${to}, or, while the table is not to change, GRANT ALL ON ${place} TO ${to}`,
    ),
  ];
}

function undeliveredNote(table: string): string {
  return `The capture of the table ${table} is ENABLE ALWAYS, and the trigger enqueue_event of svc.events is not: events of a session with session_replication_role = replica are kept and not delivered. ALTER TABLE svc.events ENABLE ALWAYS TRIGGER enqueue_event has them delivered.`;
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
