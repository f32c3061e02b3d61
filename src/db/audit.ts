import type { ClientBase } from "pg";
import type { Actor } from "../kit/actor.ts";
import { sqlOver, type Sql } from "./sql.ts";

/** Actions in `svc.audit`. The table has a check for each of these lists. */
export const auditActions = [
  "user.created",
  "user.updated",
  "user.disabled",
  "user.enabled",
  "user.deleted",
  "token.created",
  "token.updated",
  "token.revoked",
  "token.deleted",
  "webhook.created",
  "webhook.updated",
  "webhook.secret_replaced",
  "webhook.deleted",
  "webhook.held_discarded",
  "webhook.replay_started",
  "webhook.replay_paused",
  "webhook.replay_resumed",
  "webhook.replay_cancelled",
  "secret_key.rotated",
  "configuration.loaded",
  "configuration.reloaded",
  "configuration.refused",
  "reload.requested",
  "migration.applied",
  "record.erased",
] as const;

/** Values of the filter by action: an action, or the part before its dot. */
export const auditActionNames: readonly string[] = [
  ...new Set(auditActions.flatMap((action) => [action.slice(0, action.indexOf(".")), action])),
];

/**
 * Kinds of actors: a user of the API, an operator with svc-admin, a process by itself, or a role of
 * the database.
 */
export const actorKinds = ["user", "operator", "service", "database"] as const;

/** Kinds of changed objects. */
export const subjectKinds = [
  "user",
  "token",
  "webhook",
  "secret_key",
  "configuration",
  "migration",
  "record",
] as const;

/**
 * Returns a CTE `acting` that passes the actor, in the form of `actorText`, to the triggers. The
 * statement must read from it, because PostgreSQL skips a CTE that is not read.
 */
export function actingCte(parameter: string): string {
  return `acting AS MATERIALIZED (SELECT set_config('svc.actor', ${parameter}, true))`;
}

/**
 * Returns an actor in the form of the setting `svc.actor`. Empty for no actor, which makes the
 * database role the actor.
 */
export function actorText(actor: Actor | undefined): string {
  return actor === undefined ? "" : JSON.stringify(actor);
}

/** Passes the actor to the triggers, until the transaction of `sql` ends. */
export async function handOverIn(sql: Sql, actor: Actor | undefined): Promise<void> {
  await sql("SELECT set_config('svc.actor', $1, true)", [actorText(actor)]);
}

/** Most titles that are recorded; more are only counted. */
const mostTitles = 200;
/** Most characters of a title, which can be a whole statement. */
const longestTitle = 500;

/**
 * Records the steps of a migration in its own transaction, `client`'s; nothing when there were
 * none.
 */
export async function recordMigration(
  client: ClientBase,
  steps: readonly { readonly title: string }[],
  actor: Actor | undefined,
): Promise<void> {
  if (steps.length === 0) return;
  // Converts to bytes and back, because PostgreSQL refuses JSON with half a surrogate pair, which
  // would fail the migration.
  const titles = steps
    .slice(0, mostTitles)
    .map(({ title }) => Buffer.from(title.slice(0, longestTitle)).toString());
  const details = JSON.stringify({ steps: steps.length, titles });
  await handOverIn(sqlOver(client), actor);
  await client.query("SELECT svc.record_audit('migration.applied', 'migration', NULL, $1)", [details]);
}
