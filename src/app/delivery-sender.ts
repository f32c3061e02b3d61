import type { Config } from "../config/load.ts";
import { createSender, type Sender } from "../deliveries/attempt/send.ts";

/**
 * Creates the sender of the POSTs of webhooks: in a dispatcher, and in an API for tests of
 * webhooks.
 */
export function createDeliverySender({
  timeoutMs,
  allowedNetworks,
  adminNetworks,
  concurrency,
}: Config["webhooks"]): Sender {
  return createSender({ timeoutMs, allowedNetworks, adminNetworks, maxSockets: concurrency });
}
