import type { Broker, OutgoingMessage, PublishOutcome } from "../../src/broker/broker.ts";
import { createInProcessBroker } from "../../src/broker/in-process.ts";
import { createLog } from "../../src/telemetry/log.ts";

export interface WatchedBroker extends Broker {
  /** Messages that were given to `publish`, confirmed or not, in order. */
  readonly published: OutgoingMessage[];
  /** Returns whether a message is refused: it is answered with `unconfirmed`. At first, none is. */
  refuses: (message: OutgoingMessage) => boolean;
  /** Result of `isConnected`. */
  connected: boolean;
}

/** Creates an in-process broker with the rare faults of a real one. */
export function createWatchedBroker(): WatchedBroker {
  const inner = createInProcessBroker({ log: createLog({ level: "silent" }) });
  const broker: WatchedBroker = {
    ...inner,
    published: [],
    refuses: () => false,
    connected: true,
    isConnected: () => broker.connected,
    fault: async () => (broker.connected ? inner.fault() : "not connected to RabbitMQ"),
    async publish(messages) {
      broker.published.push(...messages);
      const taken = await inner.publish(messages.filter((message) => !broker.refuses(message)));
      const outcomes = taken[Symbol.iterator]();
      const refused: PublishOutcome = { kind: "unconfirmed", reason: "nack" };
      return messages.map((message) =>
        broker.refuses(message) ? refused : (outcomes.next().value ?? refused),
      );
    },
  };
  return broker;
}
