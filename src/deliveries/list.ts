import { cursorEnvelope, envelope, type CursorEnvelope, type Envelope } from "../http/page.ts";
import type { Caller } from "../kit/caller.ts";
import type { Condition } from "../querying/condition.ts";
import { cursorBinding, cursorPage, openPosition } from "../querying/cursor-page.ts";
import type { Cursors } from "../querying/cursor.ts";
import { fixedShape, type ListedKey } from "../querying/fixed-shape.ts";
import type { ListParameters } from "../querying/list-parameters.ts";
import { createProjection } from "../querying/projection.ts";
import { deliveryStatuses, type DeliveryStatus } from "./delivery.ts";
import type { DeliveryFilter, DeliveryOrder } from "./history-texts.ts";
import type { DeliveryHistory, DeliveryRow } from "./history.ts";
import { presentDelivery, rowIdOf } from "./delivery-json.ts";

const fault = "without an index, and there may be millions of deliveries";
const shown = (name: string): ListedKey => ({ name, type: "String", fault });

/**
 * There may be millions of deliveries, also of one user. Each has an index by id of one user's, of
 * one subscription's, and of those with one status. No other filter or order has one.
 */
export const deliveryShape = fixedShape(
  [
    { name: "id", type: "BigInt", operators: ["eq", "lt", "lte", "gt", "gte", "between"] },
    shown("uuid"),
    { name: "event_id", type: "BigInt", operators: ["eq"], isSorted: false },
    shown("event_uuid"),
    { name: "subscription_id", type: "Int", operators: ["eq"], isSorted: false },
    shown("parent_delivery_id"),
    shown("root_delivery_id"),
    ...["trigger_kind", "resource", "event", "record_id", "occurred_at"].map(shown),
    { name: "status", type: "Enum", values: deliveryStatuses, operators: ["eq"], isSorted: false },
    ...["attempt", "max_attempts", "url", "next_attempt_at", "last_error", "created_at", "updated_at"].map(
      shown,
    ),
  ],
  {
    hasGroups: false,
    counts: ["estimated", "none"],
    own: new Map<string, (text: string) => string | undefined>([
      [
        "webhook_id",
        (text) => (isSubscriptionId(text) ? undefined : "The webhook id field must be an integer."),
      ],
      ["status", (text) => (isStatus(text) ? undefined : "The selected status is invalid.")],
      [
        "event_id",
        (text) => (rowIdOf(text) === undefined ? "The event id field must be an integer." : undefined),
      ],
    ]),
  },
);

function isStatus(text: string): text is DeliveryStatus {
  return deliveryStatuses.some((status) => status === text);
}

function isSubscriptionId(text: string): boolean {
  const id = rowIdOf(text);
  return id !== undefined && Number(id) <= 2 ** 31 - 1;
}

/** What a filter asks of each column: the values that it must equal, and bounds of the id. */
interface Asked {
  readonly subscriptionIds: Set<string>;
  readonly statuses: Set<string>;
  readonly eventIds: Set<string>;
  from: bigint;
  to: bigint;
}

const lastId = 2n ** 63n - 1n;

/** Returns what a request asks for; undefined when no delivery can meet it. */
export function deliveryFilter(
  { filter, given }: Pick<ListParameters, "filter" | "given">,
  caller: Pick<Caller, "id" | "isAdmin">,
): DeliveryFilter | undefined {
  const of = (name: string): Set<string> => new Set([given.get(name) ?? []].flat());
  const asked: Asked = {
    subscriptionIds: of("webhook_id"),
    statuses: of("status"),
    eventIds: of("event_id"),
    from: 1n,
    to: lastId,
  };
  note(filter, asked);
  const { subscriptionIds, statuses, eventIds, from, to } = asked;
  if ([subscriptionIds, statuses, eventIds].some(({ size }) => size > 1) || from > to) return undefined;
  const [subscriptionId] = subscriptionIds;
  const [status] = statuses;
  const [eventId] = eventIds;
  return {
    userId: caller.isAdmin ? undefined : caller.id,
    subscriptionId: subscriptionId === undefined ? undefined : Number(subscriptionId),
    status: status as DeliveryStatus | undefined,
    eventId,
    fromId: from === 1n ? undefined : String(from),
    toId: to === lastId ? undefined : String(to),
  };
}

function note(condition: Condition, asked: Asked): void {
  if (condition.kind === "all") for (const one of condition.of) note(one, asked);
  // The shape lets nothing else through.
  if (condition.kind !== "compare") return;
  const { field, operator } = condition;
  // The shape has ids and texts only.
  const value = typeof condition.value === "string" ? condition.value : "";
  if (field.name === "subscription_id") asked.subscriptionIds.add(value);
  else if (field.name === "status") asked.statuses.add(value);
  else if (field.name === "event_id") asked.eventIds.add(value);
  else noteId(operator, BigInt(value), asked);
}

function noteId(operator: string, id: bigint, asked: Asked): void {
  const least = operator === ">" ? id + 1n : operator === "<" || operator === "<=" ? undefined : id;
  const most = operator === "<" ? id - 1n : operator === ">" || operator === ">=" ? undefined : id;
  if (least !== undefined && least > asked.from) asked.from = least;
  if (most !== undefined && most < asked.to) asked.to = most;
}

export interface DeliveryListOptions {
  readonly history: Pick<DeliveryHistory, "list" | "read">;
  readonly caller: Pick<Caller, "id" | "isAdmin">;
  readonly cursors: Cursors;
  /** URL of the request, for the links. */
  readonly url: URL;
}

/** Reads what a request asks for. A total above 10,000 is an estimate. */
export async function readDeliveryList(
  parameters: ListParameters,
  options: DeliveryListOptions,
): Promise<Envelope<unknown> | CursorEnvelope<unknown>> {
  const filter = deliveryFilter(parameters, options.caller);
  const order: DeliveryOrder = parameters.sort?.[0]?.direction ?? "desc";
  const { paging } = parameters;
  return paging.kind === "page"
    ? readNumbered(parameters, paging, { ...options, filter, order })
    : readByCursor(parameters, paging, { ...options, filter, order });
}

interface Reading extends DeliveryListOptions {
  readonly filter: DeliveryFilter | undefined;
  readonly order: DeliveryOrder;
}

async function readNumbered(
  parameters: ListParameters,
  { page, perPage, skip }: Extract<ListParameters["paging"], { kind: "page" }>,
  { history, filter, order, url }: Reading,
): Promise<Envelope<unknown>> {
  const present = presenter(parameters);
  if (filter === undefined) {
    const total = parameters.count === "none" ? undefined : 0;
    return envelope({ data: [], total, page, perPage, url });
  }
  if (parameters.count === "none") {
    const rows = await history.read({ filter, order, skip, take: perPage + 1 });
    const data = rows.slice(0, perPage).map(present);
    return envelope({ data, total: undefined, hasNext: rows.length > perPage, page, perPage, url });
  }
  const { rows, total, isEstimate } = await history.list({ filter, order, skip, take: perPage });
  return envelope({ data: rows.map(present), total, isEstimate, page, perPage, url });
}

async function readByCursor(
  parameters: ListParameters,
  { cursor, perPage }: Extract<ListParameters["paging"], { kind: "cursor" }>,
  { history, caller, cursors, filter, order, url }: Reading,
): Promise<CursorEnvelope<unknown>> {
  const binding = cursorBinding("webhook-deliveries", caller.id, parameters);
  const position = openPosition(cursors, cursor, binding);
  const isAscending = (order === "asc") !== (position?.isBackwards === true);
  const part = filter && beyond(filter, position?.values[0], isAscending);
  const read =
    part === undefined
      ? []
      : await history.read({ filter: part, order: isAscending ? "asc" : "desc", skip: 0, take: perPage + 1 });
  const { rows, next, previous } = cursorPage(read, { position, take: perPage, valuesOf: ({ id }) => [id] });
  const seal = (one: typeof next): string | undefined => one && cursors.seal(one, binding);
  const data = rows.map(presenter(parameters));
  return cursorEnvelope({ data, next: seal(next), previous: seal(previous), perPage, url });
}

/** The part of a list beyond an id. */
function beyond(filter: DeliveryFilter, id: string | null | undefined, isAscending: boolean): DeliveryFilter {
  if (id === undefined || id === null) return filter;
  return isAscending
    ? { ...filter, fromId: String(BigInt(id) + 1n) }
    : { ...filter, toId: String(BigInt(id) - 1n) };
}

function presenter({ fields }: ListParameters): (row: DeliveryRow) => unknown {
  if (fields === undefined) return presentDelivery;
  const project = createProjection(fields, deliveryShape.places);
  return (row) => project(presentDelivery(row));
}
