import type { Log } from "../telemetry/log.ts";
import type { ConsumeOptions, IncomingMessage } from "./broker.ts";

/** Wait of a message whose handler threw. */
const restMs = 1_000;

/**
 * Calls the handler, which must not throw. If it does, the message is requeued after a pause: it is
 * not lost, and a faulty handler does not loop.
 */
export function handOut(message: IncomingMessage, { queue, onMessage }: ConsumeOptions, log: Log): void {
  try {
    onMessage(message);
  } catch (error) {
    log.error({ err: error, queue, message_id: message.messageId }, "a message handler threw");
    setTimeout(() => message.requeue(), restMs).unref();
  }
}
