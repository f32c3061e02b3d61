import type { Caller } from "../kit/caller.ts";
import { idOf, rowIdOf } from "../kit/ids.ts";
import { textFault } from "../mapping/storable.ts";
import type { Condition } from "../querying/condition.ts";
import { fixedShape, type ListedKey } from "../querying/fixed-shape.ts";
import type { ListParameters } from "../querying/list-parameters.ts";
import { parseAskedDate } from "../validation/dates.ts";
import { deliveredEvents, deliveryStatuses, type DeliveryStatus } from "./delivery.ts";
import type { DeliveryFilter, Narrowing } from "./history-texts.ts";
import { narrowingOf } from "./narrow-texts.ts";

const fault = "without an index, and there may be millions of deliveries";
const hasParameter = "a parameter of its own";
const shown = (name: string): ListedKey => ({ name, type: "String", fault });

/**
 * Fields that lists can filter and sort by. One user may have millions of deliveries. Indexes by id
 * exist for one user, for one subscription, and for one status. No other filter or order has an
 * index.
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
    shown("trigger_kind"),
    ...["resource", "event", "record_id"].map((name) => ({ ...shown(name), fault: hasParameter })),
    shown("occurred_at"),
    { name: "status", type: "Enum", values: deliveryStatuses, operators: ["eq"], isSorted: false },
    { ...shown("url"), fault: hasParameter },
    ...["attempt", "max_attempts", "next_attempt_at", "last_error", "created_at", "updated_at"].map(shown),
  ],
  {
    hasGroups: false,
    counts: ["estimated", "none"],
    own: {
      webhook_id: webhookIdFault,
      status: (text) => (text.split(",").every(isStatus) ? undefined : "The selected status is invalid."),
      event_id: (text) =>
        rowIdOf(text) === undefined ? "The event id field must be an integer." : undefined,
      resource: (text) => textFaultOf("resource", text),
      event: (text) =>
        deliveredEvents.some((kind) => kind === text)
          ? undefined
          : `The event field must be one of ${deliveredEvents.join(", ")}.`,
      record_id: (text) => textFaultOf("record id", text),
      url: (text) => textFaultOf("url", text),
      created_after: (text) => dateFaultOf("created after", text),
      created_before: (text) => dateFaultOf("created before", text),
    },
  },
);

export function webhookIdFault(text: string): string | undefined {
  return idOf(text) === undefined ? "The webhook id field must be an integer." : undefined;
}

function isStatus(text: string): text is DeliveryStatus {
  return deliveryStatuses.some((status) => status === text);
}

/** The longest URL of a webhook. */
const longestText = 2_048;

function textFaultOf(name: string, text: string): string | undefined {
  if (text === "") return `The ${name} field must not be empty.`;
  if (text.length > longestText)
    return `The ${name} field must not be greater than ${longestText} characters.`;
  const found = textFault(text);
  return found === undefined ? undefined : `The ${name} field must not contain ${found}.`;
}

function dateFaultOf(name: string, text: string): string | undefined {
  return parseAskedDate(text) ? undefined : `The ${name} field must be a date, such as 2026-03-28T14:30:00Z.`;
}

/** Returns the requested conditions that no index serves; undefined without any. */
function askedNarrowing(given: ListParameters["given"]): Narrowing | undefined {
  const [resource, recordId, url] = ["resource", "record_id", "url"].map((name) => given.get(name));
  const event = deliveredEvents.find((kind) => kind === given.get("event"));
  const [createdAfter, createdBefore] = ["created_after", "created_before"].map((name) =>
    parseAskedDate(given.get(name) ?? ""),
  );
  return narrowingOf({ resource, event, recordId, url, createdAfter, createdBefore });
}

/** Conditions of a filter by column: the values that it must equal, and bounds of the id. */
interface Asked {
  readonly subscriptionIds: Set<string>;
  /** Statuses of the parameter `filter`. */
  readonly statuses: Set<string>;
  readonly eventIds: Set<string>;
  from: bigint;
  to: bigint;
}

const lastId = 2n ** 63n - 1n;

/** Returns the filter of a request; undefined when no delivery can match it. */
export function deliveryFilter(
  { filter, given }: Pick<ListParameters, "filter" | "given">,
  caller: Pick<Caller, "id" | "isAdmin">,
): DeliveryFilter | undefined {
  const of = (name: string): Set<string> => new Set([given.get(name) ?? []].flat());
  const asked: Asked = {
    subscriptionIds: of("webhook_id"),
    statuses: new Set(),
    eventIds: of("event_id"),
    from: 1n,
    to: lastId,
  };
  note(filter, asked);
  const { subscriptionIds, statuses, eventIds, from, to } = asked;
  if ([subscriptionIds, statuses, eventIds].some(({ size }) => size > 1) || from > to) return undefined;
  const [subscriptionId] = subscriptionIds;
  const [eventId] = eventIds;
  const some = given.get("status")?.split(",") ?? deliveryStatuses;
  const wanted = deliveryStatuses.filter(
    (one) => some.includes(one) && (statuses.size === 0 || statuses.has(one)),
  );
  if (wanted.length === 0) return undefined;
  return {
    userId: caller.isAdmin ? undefined : caller.id,
    subscriptionId: subscriptionId === undefined ? undefined : Number(subscriptionId),
    statuses: wanted.length === deliveryStatuses.length ? undefined : wanted,
    narrowing: askedNarrowing(given),
    eventId,
    fromId: from === 1n ? undefined : String(from),
    toId: to === lastId ? undefined : String(to),
  };
}

function note(condition: Condition, asked: Asked): void {
  if (condition.kind === "all") for (const one of condition.of) note(one, asked);
  // The shape refuses every other kind of condition.
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
