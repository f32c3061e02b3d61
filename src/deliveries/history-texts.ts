import type { DeliveryStatus } from "./delivery.ts";

export interface DeliveryFilter {
  /** Undefined: of all users. */
  readonly userId?: number | undefined;
  readonly subscriptionId?: number | undefined;
  readonly status?: DeliveryStatus | undefined;
  /** Row id, as a decimal string. */
  readonly eventId?: string | undefined;
}

/** A statement whose parameters $1 and $2 are the numbers of deliveries to skip and to take. */
export interface ListStatement {
  readonly text: string;
  /** Values of the parameters from $3 on. */
  readonly values: readonly unknown[];
}

/**
 * Selects a page of the matching deliveries, counted from the newest. The rows come in no order.
 */
export function listText(filter: DeliveryFilter, columns: string): ListStatement {
  const { text, values } = idsText(filter);
  // An array, not a join: without statistics of the filter, the planner would expect a tenth of the
  // table. The user is checked again in case a subscription was given to another user by SQL.
  const own = filter.userId === undefined ? [] : [filter.userId];
  const isOwn = own.map(() => `AND delivery.user_id + 0 = $${values.length + 3}`).join("");
  return {
    text: `SELECT ${columns} FROM svc.deliveries AS delivery
      WHERE delivery.id = ANY(ARRAY(${text})) ${isOwn}`,
    values: [...values, ...own],
  };
}

/** Counts the matching deliveries, up to $2. */
export function countText(filter: DeliveryFilter): ListStatement {
  const { text, values } = idsText(filter);
  return { text: `SELECT count(*)::int AS count FROM (${text}) AS counted`, values };
}

/** Asks the planner for its estimate of their number; its parameters begin at $1. */
export function estimateText({ userId, subscriptionId, status, eventId }: DeliveryFilter): ListStatement {
  const parameters = createParameters(1);
  const conditions = [
    eventId === undefined ? [] : `event_id = ${parameters.add(eventId)}::bigint`,
    // Not both: the planner would multiply the two shares, but a subscription has one user.
    subscriptionId === undefined ? [] : `subscription_id = ${parameters.add(subscriptionId)}`,
    userId === undefined || subscriptionId !== undefined ? [] : `user_id = ${parameters.add(userId)}`,
    status === undefined ? [] : `status = ${parameters.add(status)}`,
  ].flat();
  return {
    text: `EXPLAIN (FORMAT JSON) SELECT FROM svc.deliveries WHERE ${["true", ...conditions].join(" AND ")}`,
    values: parameters.values,
  };
}

const lastId = "9223372036854775807";

/**
 * Selects ids in their order, by the one index that has this order. The condition is a range of
 * that index: for an equality, old statistics can make the planner sort all matches, or read the
 * deliveries of all users.
 */
function idsText(filter: DeliveryFilter): ListStatement {
  const parameters = createParameters(3);
  const { userId, subscriptionId, status, eventId } = filter;
  const user = userId === undefined ? undefined : `${parameters.add(userId)}::int`;
  const subscription = subscriptionId === undefined ? undefined : `${parameters.add(subscriptionId)}::int`;
  const state = status === undefined ? undefined : `${parameters.add(status)}::text`;
  const { values } = parameters;
  const page = "OFFSET $1::bigint LIMIT $2::bigint";

  if (eventId !== undefined) {
    // At most the event's own deliveries. Without OFFSET 0, PostgreSQL would search from the newest
    // delivery of all.
    const where = [
      `event_id = ${parameters.add(eventId)}::bigint`,
      subscription === undefined ? [] : `subscription_id = ${subscription}`,
      user === undefined ? [] : `user_id + 0 = ${user}`,
      state === undefined ? [] : `status = ${state}`,
    ].flat();
    return {
      text: `SELECT id FROM (SELECT id FROM svc.deliveries WHERE ${where.join(" AND ")} OFFSET 0) AS of_event
        ORDER BY id DESC ${page}`,
      values,
    };
  }

  const scope =
    subscription !== undefined
      ? [["subscription_id", subscription] as const]
      : user !== undefined
        ? [["user_id", user] as const]
        : [];
  // Checks once that the subscription is the user's. A condition on the user for each row would
  // read all of the subscription's deliveries.
  const ofOwner =
    user === undefined || subscription === undefined
      ? []
      : `(SELECT user_id FROM svc.deliveries WHERE ${rangeOf([["subscription_id", subscription]], "id")}
          ORDER BY subscription_id DESC, id DESC LIMIT 1) = ${user}`;

  if (status === "pending" || status === "retrying") {
    // Unfinished deliveries are in the queue or in one of the few flights, or in both while a
    // flight ends.
    const queued = [
      rangeOf(scope, "delivery_id"),
      ofOwner,
      `(SELECT status FROM svc.deliveries WHERE id = queued.delivery_id) = ${state}`,
    ].flat();
    const inHand = scope.map(([column, value]) => `${column} + 0 = ${value}`);
    return {
      text: `SELECT id FROM (
        (SELECT delivery_id AS id FROM svc.delivery_queue AS queued WHERE ${queued.join(" AND ")}
          ORDER BY ${orderOf(scope, "delivery_id")} LIMIT $1::bigint + $2::bigint)
        UNION
        SELECT id FROM svc.deliveries WHERE ${["id = ANY(ARRAY(SELECT unnest(delivery_ids) FROM svc.flights))", inHand, ofOwner, `status = ${state}`].flat().join(" AND ")}
      ) AS waiting ORDER BY id DESC ${page}`,
      values,
    };
  }

  const isProblem = status === "failed" || status === "cancelled";
  const columns = isProblem && state !== undefined ? [...scope, ["problem", state] as const] : scope;
  const where = [
    rangeOf(columns, "id"),
    isProblem ? "problem IS NOT NULL" : [],
    // The planner expects half of all for this condition, which is near enough: most are delivered.
    status === "delivered" ? `CASE WHEN status = ${state} THEN true END` : [],
    ofOwner,
  ].flat();
  return {
    text: `SELECT id FROM svc.deliveries WHERE ${where.join(" AND ")} ORDER BY ${orderOf(columns, "id")} ${page}`,
    values,
  };
}

type Column = readonly [name: string, value: string];

function rangeOf(columns: readonly Column[], id: string): string {
  if (columns.length === 0) return "true";
  const names = [...columns.map(([name]) => name), id].join(", ");
  const valuesWith = (last: string): string =>
    [...columns.map(([, value]) => value), `${last}::bigint`].join(", ");
  return `(${names}) >= (${valuesWith("0")}) AND (${names}) <= (${valuesWith(lastId)})`;
}

function orderOf(columns: readonly Column[], id: string): string {
  return [...columns.map(([name]) => name), id].map((name) => `${name} DESC`).join(", ");
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
