import type { Broker, OutgoingMessage } from "../../src/broker/broker.ts";
import { exchanges, lanes, queues } from "../../src/broker/topology.ts";

/** Returns a first attempt with an id. */
export function work(messageId: string): OutgoingMessage {
  return { exchange: exchanges.deliveries, routingKey: lanes.first, messageId, body: Buffer.from(messageId) };
}

/** Consumes first attempts, and acknowledges each. Returns their ids, in a list that grows. */
export async function receiveFirst(broker: Broker): Promise<readonly string[]> {
  const received: string[] = [];
  await broker.consume({
    queue: queues.first,
    prefetch: 10,
    onMessage(message) {
      received.push(message.messageId);
      message.ack();
    },
  });
  return received;
}
