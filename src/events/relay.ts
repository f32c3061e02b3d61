import type { Broker, OutgoingMessage } from "../broker/broker.ts";
import { exchanges, queues } from "../broker/topology.ts";
import { idsForLog, type Log } from "../log.ts";
import type { EventMetrics } from "../metrics/events.ts";
import { noTracing, type Span, type Tracing } from "../tracing.ts";
import { createAlarm, type Worker } from "../worker.ts";
import type { EventEnvelope } from "./event.ts";
import type { Outbox, OutboxEvent, Postponement } from "./outbox.ts";
import { beginPublish } from "./publish-span.ts";

/** The record of an event as JSON, or why it cannot be had now. */
export type Presented =
  | { readonly kind: "presented"; readonly data: unknown }
  | { readonly kind: "refused"; readonly reason: string };

export interface Relay extends Worker {
  /** Says that there is something to publish; the poll would find it too, only later. */
  wake(): void;
}

export interface RelayOptions {
  readonly outbox: Outbox;
  /** One answer per event, in order. Rejects when none can be had (the database is away). */
  readonly present: (events: readonly OutboxEvent[]) => Promise<readonly Presented[]>;
  readonly broker: Broker;
  readonly log: Log;
  readonly tracing?: Tracing;
  readonly metrics: EventMetrics;
  readonly pollIntervalMs: number;
  readonly batchSize: number;
  /** How long a confirmed event is believed to be in the broker before it is published again. */
  readonly requeueAfterMs: number;
}

// Longer than the broker's publish deadline (10 s), so that a slow publish is not claimed by a second relay.
const leaseMs = 20_000;
const longestPostponementMs = 300_000;
const strandedIntervalMs = 5_000;

/** Publishes captured events to the exchange `svc.events`: claim, transform, publish, confirm, mark. At least once. */
export function createRelay(options: RelayOptions): Relay {
  const { outbox, present, broker, log, metrics, pollIntervalMs, batchSize, requeueAfterMs } = options;
  const { tracing = noTracing } = options;
  const alarm = createAlarm();
  let lookedForStrandedAt = -strandedIntervalMs;

  /** One claim's worth; answers how many events were claimed. */
  async function turn(): Promise<number> {
    const events = await outbox.claim({ limit: batchSize, leaseMs });
    if (events.length > 0) await publish(events);
    return events.length;
  }

  /** Losing every message in the broker must lose no event: those that were confirmed and never fanned out go again. */
  async function publishStranded(): Promise<void> {
    if (performance.now() - lookedForStrandedAt < strandedIntervalMs) return;
    lookedForStrandedAt = performance.now();
    // While the queue holds messages, the fan-out is behind and nothing is lost.
    if ((await broker.depth(queues.fanout)) > 0) return;
    const events = await outbox.claimStranded({ limit: batchSize, leaseMs });
    if (events.length === 0) return;
    // There are more, and a broker that lost everything has lost many.
    if (events.length === batchSize) lookedForStrandedAt = -strandedIntervalMs;
    log.warn(
      { event: "relay.stranded", events: events.length },
      "events were not fanned out in time; publishing them again",
    );
    metrics.republished(events.length);
    await publish(events);
  }

  async function publish(events: readonly OutboxEvent[]): Promise<void> {
    const startedAt = performance.now();
    const presented = await present(events);
    const presentedAt = performance.now();
    const ready: { event: OutboxEvent; span: Span; message: OutgoingMessage }[] = [];
    const postponed: Postponement[] = [];
    events.forEach((event, index) => {
      const answer = presented[index];
      if (answer?.kind === "presented") {
        const span = beginPublish(tracing, event);
        ready.push({ event, span, message: toMessage(event, answer.data, span) });
      } else {
        postponed.push(postpone(event, answer?.reason ?? "not presented"));
        metrics.postponed("refused");
      }
    });
    const outcomes = await broker.publish(ready.map(({ message }) => message));
    const confirmedAt = performance.now();
    const published: string[] = [];
    ready.forEach(({ event, span }, index) => {
      const outcome = outcomes[index];
      span.end(outcome?.kind === "confirmed" ? undefined : "unconfirmed");
      if (outcome?.kind === "confirmed") {
        published.push(event.id);
        metrics.published(event);
      } else {
        postponed.push(postpone(event, `unconfirmed: ${outcome?.reason ?? "no answer"}`));
        metrics.postponed("unconfirmed");
      }
    });
    await Promise.all([
      outbox.markPublished({ ids: published, believedForMs: requeueAfterMs }),
      outbox.postpone(postponed),
    ]);
    const endedAt = performance.now();
    log.info(
      {
        event: "relay.turn",
        claimed: events.length,
        published: published.length,
        postponed: postponed.length,
        resources: idsForLog([...new Set(events.map(({ resource }) => resource))]),
        eventUuids: idsForLog(events.map(({ uuid }) => uuid)),
        oldestAgeMs: Date.now() - Date.parse(events[0]?.timestamp ?? ""),
        presentMs: Math.round(presentedAt - startedAt),
        publishMs: Math.round(confirmedAt - presentedAt),
        durationMs: Math.round(endedAt - startedAt),
      },
      "relay turn",
    );
    const uuids = new Map(events.map(({ id, uuid }) => [id, uuid]));
    for (const { id, reason } of postponed)
      log.warn({ event: "relay.postponed", eventUuid: uuids.get(id), reason }, "event postponed");
  }

  return {
    name: "relay",
    wake: () => alarm.wake(),
    async run(signal) {
      while (!signal.aborted) {
        try {
          // Without a broker a claim would only age in vain.
          if (broker.isConnected()) {
            if ((await turn()) === batchSize) continue;
            await publishStranded();
          }
        } catch (error) {
          log.error({ err: error }, "relay turn failed; trying again");
          await alarm.wait(1_000, signal);
        }
        await alarm.wait(pollIntervalMs, signal);
      }
    },
  };
}

function toMessage(event: OutboxEvent, data: unknown, { traceparent }: Span): OutgoingMessage {
  const envelope: EventEnvelope = {
    event_id: event.uuid,
    event: event.trigger,
    resource: event.resource,
    record_id: event.recordId,
    owner_id: event.ownerId,
    data,
    timestamp: event.timestamp,
  };
  return {
    exchange: exchanges.events,
    routingKey: `${event.resource}.${event.trigger}`,
    messageId: event.uuid,
    body: Buffer.from(JSON.stringify(envelope)),
    ...(traceparent === undefined ? {} : { headers: { traceparent } }),
  };
}

/** An event that cannot go out is never given up: an operator mends the mapping file or the broker, and it goes. */
function postpone(event: OutboxEvent, reason: string): Postponement {
  return {
    id: event.id,
    delayMs: Math.min(1_000 * 2 ** Math.min(event.failures, 20), longestPostponementMs),
    reason,
  };
}
