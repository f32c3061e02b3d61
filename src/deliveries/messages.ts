import type { Broker, IncomingMessage, OutgoingMessage } from "../broker/broker.ts";
import { deadHeaders, exchanges, type Lane } from "../broker/topology.ts";
import { deliveryBody } from "./attempt/body.ts";
import type { DeadDelivery } from "./store.ts";

/**
 * Returns the message that announces a due delivery to other dispatchers. It carries only the row
 * id, because the queue in the database is authoritative.
 */
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

/** Most messages about deliveries that wait for slots, where any dispatcher may have one. */
const mostAnnounced = 4;
/** Most messages where only one dispatcher may have a slot. */
const mostRepeated = 20;

/** Tells dispatchers of deliveries that wait for slots. */
export type Announce = (
  deliveries: readonly { readonly id: string; readonly uuid: string }[],
  lane: Lane,
) => void;

/**
 * Creates the publisher of messages about deliveries. A lost message does no harm, because each
 * dispatcher polls the queue.
 *
 * @param dispatchers Number of dispatchers to reach. The broker hands out messages in turn, so that
 *   this many messages reach each dispatcher.
 */
export function createAnnounce({
  broker,
  dispatchers,
}: {
  readonly broker: Pick<Broker, "publish">;
  readonly dispatchers: () => number;
}): Announce {
  return (deliveries, lane) => {
    const told = deliveries.slice(0, mostAnnounced).map((delivery) => deliveryMessage(delivery, lane));
    const [first] = told;
    if (first === undefined) return;
    const count = Math.min(dispatchers(), mostRepeated);
    while (told.length < count) told.push(first);
    void broker.publish(told);
  };
}

/** Returns whether a message has the form of `deliveryMessage`. */
export function isDeliveryMessage({ body }: IncomingMessage): boolean {
  return /^\{"delivery_id":"[1-9]\d{0,18}"\}$/.test(body.toString("latin1", 0, 64));
}

/**
 * Returns the dead letter of a failed delivery: the payload that could not be delivered, for
 * consumers of `svc.dead`.
 */
export function deadDeliveryMessage({
  lastError,
  data,
  previous,
  ...delivery
}: Omit<DeadDelivery, "data" | "previous"> & {
  readonly data: string | Uint8Array;
  readonly previous?: string | Uint8Array | null | undefined;
}): OutgoingMessage {
  const { uuid, eventUuid } = delivery;
  const body = deliveryBody({
    ...delivery,
    data: Buffer.from(data),
    previous: previous === undefined || previous === null ? undefined : Buffer.from(previous),
  });
  return {
    exchange: exchanges.dead,
    routingKey: "",
    messageId: uuid,
    body: Buffer.concat(body),
    headers: {
      [deadHeaders.reason]: lastError ?? "failed",
      [deadHeaders.delivery]: uuid,
      [deadHeaders.event]: eventUuid,
    },
  };
}

/** Returns the dead letter of a message that no consumer can handle, unchanged. */
export function deadMessage(message: IncomingMessage, reason: string): OutgoingMessage {
  return {
    exchange: exchanges.dead,
    routingKey: "",
    messageId: message.messageId,
    body: message.body,
    headers: { [deadHeaders.reason]: reason },
  };
}
