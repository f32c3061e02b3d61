import type { Broker, IncomingMessage } from "../broker/broker.ts";
import { pause } from "../kit/worker.ts";
import type { DeliveryMetrics } from "../telemetry/metrics/deliveries.ts";
import { deadMessage } from "./messages.ts";

/** Wait before messages that could not be moved are requeued: they come again at once. */
const requeueAfterMs = 1_000;

/** Moves messages that are not from this service to `svc.dead`, or requeues them. */
export async function deadLetterForeign(
  {
    broker,
    metrics,
  }: {
    readonly broker: Pick<Broker, "publish">;
    readonly metrics: Pick<DeliveryMetrics, "deadLettered">;
  },
  messages: readonly IncomingMessage[],
  { reason, signal }: { readonly reason: string; readonly signal: AbortSignal },
): Promise<void> {
  const outcomes = await broker.publish(messages.map((message) => deadMessage(message, reason)));
  const isMoved = (index: number): boolean => outcomes[index]?.kind === "confirmed";
  const moved = messages.filter((_, index) => isMoved(index));
  metrics.deadLettered("foreign", moved.length);
  for (const message of moved) message.ack();
  if (moved.length === messages.length) return;
  await pause(requeueAfterMs, signal);
  messages.forEach((message, index) => {
    if (!isMoved(index)) message.requeue();
  });
}
