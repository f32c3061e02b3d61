import { exchanges } from "../broker/topology.ts";
import { traceparentOf, unsampledTraceparent, type Span, type Tracing } from "../telemetry/tracing.ts";
import type { OutboxEvent } from "./outbox.ts";

/**
 * Begins the span of one event's publish, in the writer's trace. An untraced writer gets a new
 * trace.
 */
export function beginPublish(
  tracing: Tracing,
  {
    uuid,
    resource,
    trigger,
    traceparent,
  }: Pick<OutboxEvent, "uuid" | "resource" | "trigger" | "traceparent">,
): Span {
  return tracing.begin({
    name: `publish ${exchanges.events}`,
    kind: "producer",
    ...(traceparent === unsampledTraceparent
      ? { isSampled: false }
      : { parent: traceparentOf({ traceparent }) }),
    attributes: {
      "messaging.system": "rabbitmq",
      "messaging.operation.name": "publish",
      "messaging.operation.type": "send",
      "messaging.destination.name": exchanges.events,
      "messaging.rabbitmq.destination.routing_key": `${resource}.${trigger}`,
      "messaging.message.id": uuid,
    },
  });
}
