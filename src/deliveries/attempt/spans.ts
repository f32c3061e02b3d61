import type { IncomingMessage } from "../../broker/broker.ts";
import { exchanges, queues } from "../../broker/topology.ts";
import { traceparentOf, type Span, type Tracing } from "../../telemetry/tracing.ts";
import type { DeliveryInFlight } from "./delivery-in-flight.ts";
import type { Post } from "./exchange.ts";
import type { SendResult } from "./send.ts";

/** Begins the span of one event's fan-out, as part of the trace of the event's message. */
export function beginFanOut(tracing: Tracing, { messageId, routingKey, headers }: IncomingMessage): Span {
  return tracing.begin({
    name: `process ${queues.fanout}`,
    kind: "consumer",
    parent: traceparentOf(headers),
    attributes: {
      "messaging.system": "rabbitmq",
      "messaging.operation.name": "process",
      "messaging.operation.type": "process",
      "messaging.destination.name": exchanges.events,
      "messaging.destination.subscription.name": queues.fanout,
      "messaging.rabbitmq.destination.routing_key": routingKey,
      "messaging.message.id": messageId,
    },
  });
}

/**
 * Makes a POST in a span, as part of the trace that made the delivery. The header `traceparent`
 * passes the span to the receiver.
 */
export async function sendInSpan({
  tracing,
  delivery,
  post,
  send,
}: {
  readonly tracing: Tracing;
  readonly delivery: DeliveryInFlight;
  readonly post: Post;
  /** Never rejects. */
  readonly send: (post: Post) => Promise<SendResult>;
}): Promise<SendResult> {
  const span = beginAttempt(tracing, delivery, post.url);
  const { traceparent } = span;
  const sent = await send(
    traceparent === undefined ? post : { ...post, headers: { ...post.headers, traceparent } },
  );
  if (sent.kind === "unmade") {
    span.end("unmade");
    return sent;
  }
  const { error, statusCode } = sent.result;
  span.set({ "http.response.status_code": statusCode });
  // By OpenTelemetry's conventions, an answer outside 2xx is an error named by its status.
  span.end(error === "http" ? String(statusCode) : error);
  return sent;
}

/**
 * Begins the span of a POST. It names only host, port and scheme of the URL: path and query are
 * often secret.
 */
function beginAttempt(tracing: Tracing, delivery: DeliveryInFlight, url: string): Span {
  const { uuid, eventUuid, resource, attempt, traceparent } = delivery;
  const start = { name: "POST webhook", kind: "client", parent: traceparentOf({ traceparent }) } as const;
  if (!tracing.isOn) return tracing.begin(start);
  const { protocol, hostname, port } = new URL(url);
  return tracing.begin({
    ...start,
    attributes: {
      "http.request.method": "POST",
      "http.request.resend_count": attempt > 0 ? attempt : undefined,
      "server.address": hostname,
      "server.port": Number(port) || (protocol === "https:" ? 443 : 80),
      "url.scheme": protocol.slice(0, -1),
      "svc.delivery.uuid": uuid,
      "svc.delivery.attempt": attempt + 1,
      "svc.event.uuid": eventUuid,
      "svc.resource": resource,
    },
  });
}
