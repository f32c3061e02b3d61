import type { IncomingMessage } from "../broker/broker.ts";
import { identityOf } from "../events/event-message.ts";

/**
 * Creates the check for messages that this process has not settled. The relay may publish such a
 * message again. For the copy, the check acknowledges it and returns undefined. It returns any
 * other message wrapped, and the caller must settle that.
 */
export function createUnsettled(): (message: IncomingMessage) => IncomingMessage | undefined {
  const keys = new Set<string>();
  return (message) => {
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
  };
}
