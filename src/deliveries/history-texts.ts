import { valuesCte } from "../db/sql.ts";
import type { EventKind } from "../events/event.ts";
import { createParameters, type Parameters } from "../querying/condition-text.ts";
import { selectDeliveries } from "./delivery-row.ts";
import type { DeliveryStatus } from "./delivery.ts";

/** Filter of the deliveries to read. An undefined key does not restrict them. */
export interface DeliveryFilter {
  /** Owner of the deliveries; undefined for all users. */
  readonly userId?: number | undefined;
  readonly subscriptionId?: number | undefined;
  /** At least one status. */
  readonly statuses?: readonly DeliveryStatus[] | undefined;
  /** Conditions that no index serves. */
  readonly narrowing?: Narrowing | undefined;
  /** Row id of the event, as a decimal string. */
  readonly eventId?: string | undefined;
  /** A record with few events, whose deliveries are found by the index of events. */
  readonly record?: { readonly resources: readonly string[]; readonly recordId: string } | undefined;
  /** Least and greatest id, as decimal strings. */
  readonly fromId?: string | undefined;
  readonly toId?: string | undefined;
}

/**
 * Conditions without an index. They are checked on each delivery of the scope, a bounded number at
 * a time.
 */
export interface Narrowing {
  readonly resource?: string | undefined;
  readonly event?: EventKind | undefined;
  readonly recordId?: string | undefined;
  readonly url?: string | undefined;
  readonly createdAfter?: Date | undefined;
  readonly createdBefore?: Date | undefined;
}

/** Order by id: "asc" is oldest first, "desc" newest first. */
export type DeliveryOrder = "asc" | "desc";

/** A part of the matching deliveries. */
export interface ListPart {
  readonly skip: number;
  readonly take: number;
}

/** A statement with the values of its parameters. */
export interface ListStatement {
  readonly text: string;
  readonly values: readonly unknown[];
}

/**
 * Selects a page of the matching deliveries in the given order. The rows of the page itself are
 * unordered.
 */
export function listText(filter: DeliveryFilter, order: DeliveryOrder, part: ListPart): ListStatement {
  const parameters = createParameters();
  const ids = idsText(filter, order, pageText(part, parameters), parameters);
  // An array, not a join: without statistics of the filter, the planner would expect a tenth of the
  // table. The user is checked again in case a subscription was given to another user by SQL.
  const { userId } = filter;
  const ofUser = userId === undefined ? "" : `AND delivery.user_id + 0 = ${parameters.add(userId)}`;
  return {
    text: `${selectDeliveries} WHERE delivery.id = ANY(ARRAY(${ids})) ${ofUser}`,
    values: parameters.values,
  };
}

/** Counts the matching deliveries, up to `most`. */
export function countText(filter: DeliveryFilter, most: number): ListStatement {
  const parameters = createParameters();
  const ids = idsText(filter, "desc", pageText({ skip: 0, take: most }, parameters), parameters);
  return { text: `SELECT count(*)::int AS count FROM (${ids}) AS counted`, values: parameters.values };
}

/** Asks the planner for its estimate of the matching deliveries. */
export function estimateText(filter: DeliveryFilter): ListStatement {
  const { userId, subscriptionId, statuses, eventId, fromId, toId } = filter;
  const parameters = createParameters();
  const conditions = [
    fromId === undefined ? [] : `id >= ${parameters.add(fromId)}::bigint`,
    toId === undefined ? [] : `id <= ${parameters.add(toId)}::bigint`,
    eventId === undefined ? [] : `event_id = ${parameters.add(eventId)}::bigint`,
    // Only one of the two conditions: the planner would multiply their shares, but a subscription
    // has one user.
    subscriptionId === undefined ? [] : `subscription_id = ${parameters.add(subscriptionId)}`,
    userId === undefined || subscriptionId !== undefined ? [] : `user_id = ${parameters.add(userId)}`,
    statuses === undefined ? [] : `status = ANY(${parameters.add(statuses)}::text[])`,
  ].flat();
  return {
    text: `EXPLAIN (FORMAT JSON) SELECT FROM svc.deliveries WHERE ${["true", ...conditions].join(" AND ")}`,
    values: parameters.values,
  };
}

const lastId = "9223372036854775807";

/**
 * Selects ids in the given order, by the one index with this order. The condition is a range of
 * that index. With an equality, old statistics can make the planner sort all matches, or read the
 * deliveries of all users.
 */
export function idsText(
  filter: DeliveryFilter,
  order: DeliveryOrder,
  page: PageText,
  parameters: Parameters,
): string {
  const { statuses, ...others } = filter;
  if (statuses === undefined || statuses.length === 1)
    return idsOfOne({ ...others, status: statuses?.[0] }, order, page, parameters);
  // Reads each status by its own index, and no more rows of it than the page can show.
  const upToPage = { skip: "0", take: `(${page.skip} + ${page.take})` };
  const parts = statuses.map((status) => `(${idsOfOne({ ...others, status }, order, upToPage, parameters)})`);
  return `SELECT id FROM (${parts.join(" UNION ALL ")}) AS of_some ORDER BY id ${order.toUpperCase()}
      OFFSET ${page.skip} LIMIT ${page.take}`;
}

/** SQL expressions of the numbers of deliveries to skip and to take. */
interface PageText {
  readonly skip: string;
  readonly take: string;
}

export function pageText({ skip, take }: ListPart, parameters: Parameters): PageText {
  return { skip: `${parameters.add(skip)}::bigint`, take: `${parameters.add(take)}::bigint` };
}

interface FilterOfOne extends Omit<DeliveryFilter, "statuses"> {
  readonly status: DeliveryStatus | undefined;
}

function idsOfOne(
  filter: FilterOfOne,
  order: DeliveryOrder,
  { skip, take }: PageText,
  parameters: Parameters,
): string {
  const { userId, subscriptionId, status, eventId, record, fromId, toId } = filter;
  const user = userId === undefined ? undefined : `${parameters.add(userId)}::int`;
  const subscription = subscriptionId === undefined ? undefined : `${parameters.add(subscriptionId)}::int`;
  const state = status === undefined || status === "held" ? undefined : `${parameters.add(status)}::text`;
  const range: Range = {
    from: fromId === undefined ? "0" : parameters.add(fromId),
    to: toId === undefined ? lastId : parameters.add(toId),
  };
  const direction = order.toUpperCase();
  const page = `OFFSET ${skip} LIMIT ${take}`;

  if (eventId !== undefined || record !== undefined) {
    // Reads at most the deliveries of these events. Without OFFSET 0, PostgreSQL would scan from
    // the newest delivery of all.
    const where = [
      eventId === undefined ? [] : `event_id = ${parameters.add(eventId)}::bigint`,
      record === undefined ? [] : `event_id = ANY(ARRAY(${eventsOfRecord(record, parameters)}))`,
      subscription === undefined ? [] : `subscription_id = ${subscription}`,
      user === undefined ? [] : `user_id + 0 = ${user}`,
      state === undefined ? [] : `status = ${state}`,
      status === "held" ? "held_at IS NOT NULL" : [],
    ].flat();
    return `SELECT id FROM (SELECT id FROM svc.deliveries WHERE ${where.join(" AND ")} OFFSET 0) AS of_event
        WHERE ${rangeOf([], "id", range)} ORDER BY id ${direction} ${page}`;
  }

  const scope =
    subscription !== undefined
      ? [["subscription_id", subscription] as const]
      : user !== undefined
        ? [["user_id", user] as const]
        : [];
  // Checks once that the subscription belongs to the user. A condition on the user for each row
  // would read all deliveries of the subscription.
  const ofOwner =
    user === undefined || subscription === undefined
      ? []
      : `(SELECT user_id FROM svc.deliveries WHERE ${rangeOf([["subscription_id", subscription]], "id", everyId)}
          ORDER BY subscription_id DESC, id DESC LIMIT 1) = ${user}`;

  if (status === "pending" || status === "retrying")
    return `${waitingText({ status, scope, range, ofOwner, state: state ?? "NULL", direction, most: `${skip} + ${take}` })} ${page}`;

  if (status === "held") {
    const held = ["held_at IS NOT NULL", rangeOf(scope, "id", range), ofOwner].flat();
    return `SELECT id FROM svc.deliveries WHERE ${held.join(" AND ")} ORDER BY ${orderOf(scope, "id", direction)} ${page}`;
  }

  const isProblem = status === "failed" || status === "cancelled";
  const indexed = isProblem && state !== undefined ? [...scope, ["problem", state] as const] : scope;
  const where = [
    rangeOf(indexed, "id", range),
    isProblem ? "problem IS NOT NULL" : [],
    // The planner expects half of all rows for this condition. That is close enough, since most are
    // delivered.
    status === "delivered" ? `CASE WHEN status = ${state} THEN true END` : [],
    ofOwner,
  ].flat();
  return `SELECT id FROM svc.deliveries WHERE ${where.join(" AND ")} ORDER BY ${orderOf(indexed, "id", direction)} ${page}`;
}

function eventsOfRecord(
  { resources, recordId }: NonNullable<DeliveryFilter["record"]>,
  parameters: Parameters,
): string {
  return `SELECT id FROM svc.events WHERE resource = ANY(${parameters.add(resources)}::text[]) AND record_id = ${parameters.add(recordId)}`;
}

/** Counts the events of a record, up to $3. */
export const countOfRecordText = `
  SELECT count(*)::int AS count FROM (
    SELECT FROM svc.events WHERE resource = ANY($1::text[]) AND record_id = $2 LIMIT $3) AS counted`;

/** Selects the resources that have events. */
export const resourcesText = `
  WITH RECURSIVE ${valuesCte("found", "resource", { table: "svc.events" })}
  SELECT resource FROM found WHERE resource IS NOT NULL`;

/**
 * Selects the ids of pending or retrying deliveries. They are in the queue, in one of the few
 * flights, or in both while a flight ends. For all users, pending and retrying deliveries have one
 * index each, with few others. These indexes are on `delivery_id + 0`, so that PostgreSQL uses no
 * other index.
 */
function waitingText({
  status,
  scope,
  range,
  ofOwner,
  state,
  direction,
  most,
}: {
  readonly status: "pending" | "retrying";
  readonly scope: readonly Column[];
  readonly range: Range;
  readonly ofOwner: string | readonly string[];
  readonly state: string;
  readonly direction: string;
  /** SQL expression of the number of queued deliveries that may be on the page or before it. */
  readonly most: string;
}): string {
  const isOfAll = scope.length === 0;
  const id = isOfAll ? "(delivery_id + 0)" : "delivery_id";
  const queued = [
    rangeOf(scope, id, range),
    isOfAll ? `is_retry IS NOT ${status === "retrying" ? "FALSE" : "TRUE"}` : [],
    ofOwner,
    `(SELECT status FROM svc.deliveries WHERE id = queued.delivery_id) = ${state}`,
  ].flat();
  const flying = [
    "id = ANY(ARRAY(SELECT unnest(delivery_ids) FROM svc.flights))",
    rangeOf([], "(id + 0)", range),
    scope.map(([column, value]) => `${column} + 0 = ${value}`),
    ofOwner,
    `status = ${state}`,
  ].flat();
  return `SELECT id FROM (
      (SELECT delivery_id AS id FROM svc.delivery_queue AS queued WHERE ${queued.join(" AND ")}
        ORDER BY ${orderOf(scope, id, direction)} LIMIT ${most})
      UNION
      SELECT id FROM svc.deliveries WHERE ${flying.join(" AND ")}
    ) AS waiting ORDER BY id ${direction}`;
}

type Column = readonly [name: string, value: string];

/** SQL expressions of the least and the greatest id. */
interface Range {
  readonly from: string;
  readonly to: string;
}

const everyId: Range = { from: "0", to: lastId };

/**
 * Writes the range of an index. PostgreSQL ends a scan only at the bound of the first column of a
 * row comparison. For a short range of ids it would read the index of the whole subscription. The
 * planner does not treat an array of one value as an equality. It then uses an index without the
 * column.
 */
function rangeOf(columns: readonly Column[], id: string, { from, to }: Range): string {
  const [first, ...rest] = columns;
  if (first === undefined && from === everyId.from && to === everyId.to) return "true";
  const equal = first === undefined ? [] : `${first[0]} = ANY(ARRAY[${first[1]}])`;
  const names = [...rest.map(([name]) => name), id].join(", ");
  const valuesWith = (last: string): string =>
    [...rest.map(([, value]) => value), `${last}::bigint`].join(", ");
  const bounds = [`(${names}) >= (${valuesWith(from)})`, `(${names}) <= (${valuesWith(to)})`];
  return [equal, bounds].flat().join(" AND ");
}

function orderOf(columns: readonly Column[], id: string, direction: string): string {
  return [...columns.map(([name]) => name), id].map((name) => `${name} ${direction}`).join(", ");
}
