import type { IncomingMessage, OutgoingMessage } from "../broker/broker.ts";
import { exchanges, type Lane } from "../broker/topology.ts";
import { triggers, type EventEnvelope } from "../events/event.ts";
import type { DeadDelivery } from "./store.ts";

/** Work that is due now: only the row's id travels, the row is the truth. */
export function deliveryMessage(
  delivery: { readonly id: string; readonly uuid: string },
  lane: Lane,
): OutgoingMessage {
  return {
    exchange: exchanges.deliveries,
    routingKey: lane,
    messageId: delivery.uuid,
    body: Buffer.from(JSON.stringify({ delivery_id: delivery.id })),
  };
}

/** The delivery's row id, or undefined when the message is not one of ours. */
export function deliveryIdOf(message: IncomingMessage): string | undefined {
  const body = parse(message.body);
  const id = body?.["delivery_id"];
  return typeof id === "string" && /^[1-9]\d{0,18}$/.test(id) ? id : undefined;
}

/** The event, or undefined when the message is not one. */
export function eventOf(message: IncomingMessage): EventEnvelope | undefined {
  const body = parse(message.body);
  if (body === undefined) return undefined;
  const { event_id, event, resource, record_id, owner_id, timestamp } = body;
  const isEvent =
    typeof event_id === "string" &&
    /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(event_id) &&
    triggers.some((trigger) => trigger === event) &&
    // As the loader allows it: a stranger's text must not reach a statement that a whole batch shares.
    typeof resource === "string" &&
    /^[a-z][a-z0-9_-]*$/.test(resource) &&
    typeof record_id === "string" &&
    (owner_id === null || typeof owner_id === "string") &&
    typeof timestamp === "string" &&
    "data" in body;
  return isEvent ? (body as unknown as EventEnvelope) : undefined;
}

/** A delivery whose attempts are spent, for whoever watches svc.dead: the payload that could not be delivered. */
export function deadDeliveryMessage({ uuid, eventUuid, lastError, body }: DeadDelivery): OutgoingMessage {
  return {
    exchange: exchanges.dead,
    routingKey: "",
    messageId: uuid,
    body,
    headers: { "x-svc-reason": lastError ?? "failed", "x-svc-delivery": uuid, "x-svc-event": eventUuid },
  };
}

/** A message that no consumer can handle, as it came; with the event's UUID when it is one. */
export function deadMessage(message: IncomingMessage, reason: string, eventUuid?: string): OutgoingMessage {
  return {
    exchange: exchanges.dead,
    routingKey: "",
    messageId: message.messageId,
    body: message.body,
    headers: { "x-svc-reason": reason, ...(eventUuid === undefined ? {} : { "x-svc-event": eventUuid }) },
  };
}

function parse(body: Buffer): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(body.toString("utf8"));
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}
