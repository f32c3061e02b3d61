import type { DeliveryStatus } from "./delivery.ts";

export interface DeliveryFilter {
  /** Undefined: everybody's. */
  readonly userId?: number | undefined;
  readonly subscriptionId?: number | undefined;
  readonly status?: DeliveryStatus | undefined;
  /** As a decimal string. */
  readonly eventId?: string | undefined;
}

/** A statement whose first two parameters, $1 and $2, say how many deliveries to skip and to take. */
export interface ListStatement {
  readonly text: string;
  /** Those from $3 on. */
  readonly values: readonly unknown[];
}

/** The deliveries that a filter lets through, newest first. */
export function listText(filter: DeliveryFilter, columns: string): ListStatement {
  const { text, values } = idsText(filter);
  // An array and not a join: the planner, which may know nothing of the filter, could take it for a tenth of the table.
  return {
    text: `SELECT ${columns} FROM svc.deliveries AS delivery WHERE delivery.id = ANY(ARRAY(${text})) ORDER BY delivery.id DESC`,
    values,
  };
}

/** How many they are, as far as $2. */
export function countText(filter: DeliveryFilter): ListStatement {
  const { text, values } = idsText(filter);
  return { text: `SELECT count(*)::int AS count FROM (${text}) AS counted`, values };
}

/** What the planner believes their number to be; the parameters are from $1 on. */
export function estimateText({ userId, subscriptionId, status, eventId }: DeliveryFilter): ListStatement {
  const parameters = createParameters(1);
  const conditions = [
    eventId === undefined ? [] : `event_id = ${parameters.add(eventId)}::bigint`,
    // A subscription has one user: both together would be taken for a part of it.
    subscriptionId === undefined ? [] : `subscription_id = ${parameters.add(subscriptionId)}`,
    userId === undefined || subscriptionId !== undefined ? [] : `user_id = ${parameters.add(userId)}`,
    status === undefined ? [] : `status = ${parameters.add(status)}`,
  ].flat();
  return {
    text: `EXPLAIN (FORMAT JSON) SELECT FROM svc.deliveries WHERE ${["true", ...conditions].join(" AND ")}`,
    values: parameters.values,
  };
}

/** Ids, read by the one index that holds them in their order; `+ 0` keeps the planner from another one. */
function idsText(filter: DeliveryFilter): ListStatement {
  const parameters = createParameters(3);
  const { userId, subscriptionId, status, eventId } = filter;
  const user = userId === undefined ? undefined : parameters.add(userId);
  const subscription = subscriptionId === undefined ? undefined : parameters.add(subscriptionId);
  const state = status === undefined ? undefined : parameters.add(status);
  const event = eventId === undefined ? undefined : parameters.add(eventId);
  const statusColumn = status === "failed" || status === "cancelled" ? "problem" : "status";

  const ofStatus = state === undefined ? [] : `${statusColumn} = ${state}`;
  const ofUser = user === undefined ? [] : `user_id = ${user}`;
  const alsoOfUser = user === undefined ? [] : `user_id + 0 = ${user}`;
  // Somebody else's subscription would be read to its end in vain.
  const ofOwner =
    user === undefined || subscription === undefined
      ? []
      : `(SELECT user_id FROM svc.deliveries WHERE subscription_id = ${subscription} ORDER BY id DESC LIMIT 1) = ${user}`;
  const ofScope =
    subscription === undefined ? ofUser : [`subscription_id = ${subscription}`, alsoOfUser, ofOwner].flat();
  const range = "ORDER BY id DESC OFFSET $1::bigint LIMIT $2::bigint";
  const { values } = parameters;

  if (event !== undefined) {
    // No more than the event has. OFFSET 0: or it is looked for from the newest delivery of all on.
    const ofSubscription = subscription === undefined ? [] : `subscription_id = ${subscription}`;
    const where = [`event_id = ${event}::bigint`, ofSubscription, alsoOfUser, ofStatus].flat();
    return {
      text: `SELECT id FROM (SELECT id FROM svc.deliveries WHERE ${where.join(" AND ")} OFFSET 0) AS of_event ${range}`,
      values,
    };
  }
  if (status === "pending" || status === "retrying") {
    // What is at work is in the queue, or in one of the few flights. While a flight ends it may be in both.
    const its = ["id = queued.delivery_id", alsoOfUser].flat();
    const ofQueue = [
      subscription === undefined ? ofUser : [`subscription_id = ${subscription}`, ofOwner].flat(),
      `(SELECT status FROM svc.deliveries WHERE ${its.join(" AND ")}) = ${state}`,
    ].flat();
    const ofSubscription = subscription === undefined ? [] : `subscription_id + 0 = ${subscription}`;
    const inHand = ["id = ANY(ARRAY(SELECT unnest(delivery_ids) FROM svc.flights))"];
    return {
      text: `SELECT id FROM (
        (SELECT delivery_id AS id FROM svc.delivery_queue AS queued WHERE ${ofQueue.join(" AND ")}
          ORDER BY delivery_id DESC LIMIT $1::bigint + $2::bigint)
        UNION
        SELECT id FROM svc.deliveries WHERE ${[inHand, ofSubscription, alsoOfUser, ofStatus].flat().join(" AND ")}
      ) AS waiting ${range}`,
      values,
    };
  }
  const where = [ofScope, ofStatus].flat();
  const condition = where.length === 0 ? "" : `WHERE ${where.join(" AND ")}`;
  return { text: `SELECT id FROM svc.deliveries ${condition} ${range}`, values };
}

function createParameters(first: number): {
  readonly values: readonly unknown[];
  readonly add: (value: unknown) => string;
} {
  const values: unknown[] = [];
  return {
    values,
    add: (value) => `$${first - 1 + values.push(value)}`,
  };
}
