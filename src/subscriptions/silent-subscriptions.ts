import type { Sql } from "../db/sql.ts";
import type { Definitions } from "../mapping/definition.ts";
import { silenceOf } from "../resources/silent-webhooks.ts";

/** Number of a resource's active subscriptions that no event can reach. */
interface SilentSubscriptions {
  readonly resource: string;
  /** Number of subscriptions, at most 1,000. */
  readonly count: number;
}

const countText = `
  SELECT count(*)::int AS count FROM (
    SELECT FROM svc.subscriptions AS subscription JOIN svc.users AS subscriber ON subscriber.id = subscription.user_id
    WHERE subscription.resource = $1 AND subscription.is_active
      AND NOT ($2 AND subscriber.is_admin) AND lower(subscriber.email) <> ALL($3::text[])
    LIMIT 1000
  ) AS silent`;

/**
 * Finds subscriptions that can never fire, because a mapping file or a user has changed since.
 * Leaves out resources whose admins a code module names.
 */
export async function findSilentSubscriptions(
  sql: Sql,
  definitions: Definitions,
): Promise<readonly SilentSubscriptions[]> {
  const silent: SilentSubscriptions[] = [];
  for (const definition of definitions.values()) {
    const { name: resource, isAdmin, code } = definition;
    if (code.isAdmin !== undefined || silenceOf(definition, definitions) === undefined) continue;
    const emails = isAdmin.kind === "emails" ? isAdmin.emails.map((email) => email.toLowerCase()) : [];
    const [row] = await sql<{ count: number }>(countText, [resource, isAdmin.kind === "flag", emails]);
    if (row !== undefined && row.count > 0) silent.push({ resource, count: row.count });
  }
  return silent;
}
