import type { Sql } from "../db/sql.ts";
import { noClaims, type Caller } from "../kit/caller.ts";
import type { Eligibility } from "../subscriptions/eligibility.ts";
import type { DeliveryRow } from "./delivery-row.ts";

const findText = `
  SELECT subscriber.id, subscriber.name, subscriber.email, subscriber.is_admin AS "isAdmin",
    (SELECT owner_id FROM svc.events WHERE id = $2) AS "ownerId"
  FROM svc.users AS subscriber WHERE subscriber.id = $1`;

type Found = Omit<Caller, "claims"> & { readonly ownerId: string | null };

/**
 * Returns whether the subscriber of a delivery may still read its record. True when that cannot be
 * said now: the attempt is judged again.
 */
export async function mayStillRead(
  { sql, eligibility }: { readonly sql: Sql; readonly eligibility: Pick<Eligibility, "judge"> },
  { userId, eventId, resource }: Pick<DeliveryRow, "userId" | "eventId" | "resource">,
): Promise<boolean> {
  const [found] = await sql<Found & Record<string, unknown>>(findText, [userId, eventId]);
  if (found === undefined) return false;
  const { ownerId, ...user } = found;
  const event = { id: eventId, resource, owner_id: ownerId };
  const [verdict] = await eligibility.judge([{ event, user: { ...user, claims: noClaims } }]);
  return verdict !== false;
}
