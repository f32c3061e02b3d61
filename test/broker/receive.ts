import type { Broker } from "../../src/broker/broker.ts";
import { queues } from "../../src/broker/topology.ts";

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
