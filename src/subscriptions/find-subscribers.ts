import type { Sql } from "../db/sql.ts";
import type { EventEnvelope } from "../events/event.ts";
import type { Caller } from "../users/caller.ts";
import { matches } from "./match.ts";

/** A subscription that gets an event. */
export interface Subscriber {
  readonly subscriptionId: number;
  readonly url: string;
  readonly encryptedSecret: Buffer;
  readonly user: Caller;
}

/** Who may be an admin for a resource, as far as the database can tell. With `code` anybody may. */
export type PossibleAdmins =
  | { readonly kind: "flag" | "nobody" | "code" }
  | { readonly kind: "emails"; readonly emails: readonly string[] };

interface Candidate {
  readonly subscriptionId: number;
  readonly userId: number;
  readonly url: string;
  readonly encryptedSecret: Buffer;
  /** Position of the event in the batch. */
  readonly index: number;
  readonly resource: string;
  readonly events: readonly string[];
  readonly isActive: boolean;
  readonly name: string;
  readonly email: string;
  readonly isAdmin: boolean;
  readonly isDisabled: boolean;
}

// Two branches, and not one with OR: the owner's subscriptions are found by the index on user_id, however many users
// subscribe to the resource.
const findCandidatesText = `
  WITH event AS (
    SELECT * FROM unnest($1::int[], $2::text[], $3::text[], $4::int[], $5::text[])
      AS given (index, resource, trigger, owner_id, admins)
  ), admin_email AS (
    SELECT * FROM unnest($6::text[], $7::text[]) AS given (resource, email)
  ), candidate AS (
    SELECT event.index, subscription.id
    FROM event
    JOIN svc.subscriptions AS subscription ON subscription.user_id = event.owner_id
      AND subscription.resource = event.resource AND subscription.is_active AND event.trigger = ANY(subscription.events)
    UNION
    SELECT event.index, subscription.id
    FROM event
    JOIN svc.subscriptions AS subscription ON subscription.resource = event.resource
      AND subscription.is_active AND event.trigger = ANY(subscription.events)
    JOIN svc.users AS admin ON admin.id = subscription.user_id
    WHERE event.admins = 'code' OR (event.admins = 'flag' AND admin.is_admin)
      OR (event.admins = 'emails' AND (event.resource, lower(admin.email)) IN (SELECT resource, email FROM admin_email))
  )
  SELECT candidate.index, subscription.id AS "subscriptionId", subscription.user_id AS "userId", subscription.url,
    subscription.encrypted_secret AS "encryptedSecret", subscription.resource, subscription.events, subscription.is_active AS "isActive",
    subscriber.name, subscriber.email, subscriber.is_admin AS "isAdmin", subscriber.disabled_at IS NOT NULL AS "isDisabled"
  FROM candidate
  JOIN svc.subscriptions AS subscription ON subscription.id = candidate.id
  JOIN svc.users AS subscriber ON subscriber.id = subscription.user_id
  ORDER BY candidate.index, subscription.id`;

/**
 * Finds the subscriptions that get each event of a batch, in the events' order, by one statement that narrows
 * and by `matches`, which decides.
 *
 * @param possibleAdminsOf How the statement may narrow; `nobody` for a resource that is no longer registered.
 * @param isAdminFor Decides. May throw, when the code module beside the mapping file does.
 */
export function createSubscriberFinder({
  sql,
  possibleAdminsOf,
  isAdminFor,
}: {
  readonly sql: Sql;
  readonly possibleAdminsOf: (resource: string) => PossibleAdmins;
  readonly isAdminFor: (resource: string, user: Caller) => boolean;
}): (
  events: readonly Pick<EventEnvelope, "event" | "resource" | "owner_id">[],
) => Promise<readonly (readonly Subscriber[])[]> {
  return async (events) => {
    if (events.length === 0) return [];
    const resources = [...new Set(events.map(({ resource }) => resource))];
    const admins = new Map(resources.map((resource) => [resource, possibleAdminsOf(resource)]));
    const emails = resources.flatMap((resource) => {
      const possible = admins.get(resource);
      return possible?.kind === "emails" ? possible.emails.map((email) => ({ resource, email })) : [];
    });
    const candidates = await sql<Candidate>(findCandidatesText, [
      events.map((_, index) => index),
      events.map(({ resource }) => resource),
      events.map(({ event }) => event),
      events.map((event) => userIdOf(event.owner_id)),
      events.map(({ resource }) => admins.get(resource)?.kind),
      emails.map(({ resource }) => resource),
      emails.map(({ email }) => email.toLowerCase()),
    ]);

    const subscribers: Subscriber[][] = events.map(() => []);
    for (const { index, subscriptionId, userId, url, encryptedSecret, ...subscription } of candidates) {
      const event = events[index];
      const user = { ...subscription, id: userId };
      if (event === undefined || !matches(subscription, event, user, isAdminFor)) continue;
      subscribers[index]?.push({ subscriptionId, url, encryptedSecret, user });
    }
    return subscribers;
  };
}

/** Null for an owner that no user can be. */
function userIdOf(ownerId: string | null): number | null {
  if (ownerId === null || !/^[1-9]\d{0,9}$/.test(ownerId)) return null;
  const id = Number(ownerId);
  return id < 2 ** 31 ? id : null;
}
