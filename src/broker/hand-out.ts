import type { Log } from "../telemetry/log.ts";
import type { ConsumeOptions, IncomingMessage } from "./broker.ts";

/** How long a message rests that its handler threw at. */
const restMs = 1_000;

/**
 * Calls the handler. It has no business throwing; when it does, the message goes back after a rest, so that a fault of the
 * handler neither loses the message nor spins.
 */
export function handOut({
  message,
  options: { queue, onMessage },
  log,
}: {
  readonly message: IncomingMessage;
  readonly options: ConsumeOptions;
  readonly log: Log;
}): void {
  try {
    onMessage(message);
  } catch (error) {
    log.error({ err: error, queue, message_id: message.messageId }, "a message handler threw");
    setTimeout(() => message.requeue(), restMs).unref();
  }
}
