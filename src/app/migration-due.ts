import type { Database } from "../db/client.ts";
import { findPendingByHand, titleOf } from "../migration/hand-migrations.ts";
import { findInstalled } from "../migration/installed.ts";
import { lookupFaults } from "../migration/lookup-tables.ts";
import { dueCoreSteps, refuseFaults, type MigrationTarget } from "./plan-migration.ts";
import { dueOf, removedResources, wantedResources } from "./wanted-resources.ts";

/**
 * Returns why a migration is due; empty when none is. Compares the record of the last migration and
 * the live capture triggers with the expected ones. A restored or recreated table has lost its
 * triggers. Does not compare columns.
 *
 * @throws OperatorError that names every rule about a missing table. Such rules take a further
 *   query.
 */
export async function migrationDue({
  database,
  definitions,
  byHand = [],
}: Omit<MigrationTarget, "url"> & { readonly database: Pick<Database, "pool"> }): Promise<readonly string[]> {
  const hand = await findPendingByHand(database.pool, byHand);
  // Migrations by hand may create the tables that the rules read.
  if (hand.length === 0) refuseFaults(await lookupFaults(database.pool, definitions));
  const installed = await findInstalled(database.pool);
  const core = await dueCoreSteps(installed);
  const wanted = wantedResources(definitions);
  return [
    ...core.map(({ title }) => title),
    ...hand.map(titleOf),
    ...wanted.flatMap((resource) => {
      const due = dueOf(resource, installed);
      return due === undefined || due.what === "new partitions" ? [] : [`${resource.name}: ${due.reason}`];
    }),
    ...removedResources(definitions, installed).map(({ name }) => `${name}: no longer in the mapping files`),
  ];
}
