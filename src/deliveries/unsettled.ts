import type { IncomingMessage } from "../broker/broker.ts";
import { identityOf } from "../events/event-message.ts";

/**
 * The messages that this process has not settled. The relay may publish a message again when it
 * takes long.
 */
export interface Unsettled {
  /**
   * Acknowledges a copy of a message that is not settled yet, and returns undefined. Returns any
   * other message wrapped: the caller must settle the returned message.
   */
  enter(message: IncomingMessage): IncomingMessage | undefined;
}

/** Creates an empty set of unsettled messages. */
export function createUnsettled(): Unsettled {
  const keys = new Set<string>();
  return {
    enter(message) {
      const key = identityOf(message);
      if (key === undefined) return message;
      if (keys.has(key)) {
        message.ack();
        return undefined;
      }
      keys.add(key);
      return {
        ...message,
        ack() {
          keys.delete(key);
          message.ack();
        },
        requeue() {
          keys.delete(key);
          message.requeue();
        },
      };
    },
  };
}
