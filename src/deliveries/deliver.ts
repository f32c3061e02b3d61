import { createBatcher, type Batcher } from "../batcher.ts";
import type { Broker, IncomingMessage } from "../broker/broker.ts";
import { queues, type Lane } from "../broker/topology.ts";
import { databaseFaultOf } from "../db/prisma-errors.ts";
import { messageOf } from "../errors.ts";
import type { Log } from "../log.ts";
import type { DeliveryMetrics } from "../metrics/deliveries.ts";
import { noTracing, type Tracing } from "../tracing.ts";
import type { Caller } from "../users/caller.ts";
import { aborted, pause, type Worker } from "../worker.ts";
import { hostOf, laneShares, type Admission, type Admitted } from "./admission.ts";
import { attemptLine } from "./attempt-line.ts";
import { decide } from "./decide.ts";
import type { AttemptResult, NextStep } from "./delivery.ts";
import { deadDeliveryMessage, deadMessage, deliveryIdOf } from "./messages.ts";
import { longestPostponementMs, type ScheduleOf } from "./schedule.ts";
import type { Sent } from "./send.ts";
import { signedHeaders } from "./sign.ts";
import { sendInSpan } from "./spans.ts";
import type { DeliveryStore, LeasedDelivery, Outcome, Postponement } from "./store.ts";

export interface DeliverOptions {
  readonly broker: Broker;
  readonly store: DeliveryStore;
  readonly send: (
    request: {
      readonly url: string;
      readonly headers: Readonly<Record<string, string>>;
      readonly body: readonly Uint8Array[];
    },
    user: Caller,
  ) => Promise<Sent>;
  /** The signing secret of an encrypted one; throws when the key is not the one it was encrypted with. */
  readonly decryptSecret: (sealed: Uint8Array) => string;
  readonly isAdminFor: (resource: string, user: Caller) => boolean;
  readonly scheduleOf: ScheduleOf;
  readonly jitter: number;
  readonly timeoutMs: number;
  /** Attempts in flight. */
  readonly concurrency: number;
  readonly admission: Pick<Admission, "admit">;
  readonly log: Log;
  readonly metrics: DeliveryMetrics;
  readonly tracing?: Tracing;
  /** Told of every retry and postponement that was written, with its wait. */
  readonly onRetry: (delayMs: number) => void;
  readonly random: () => number;
}

// Covers what an attempt does besides its POST: the wait for the lease, the decision and the write of its outcome.
const leaseMarginMs = 15_000;
const recordRetryMs = 500;

/**
 * Makes the attempts: lease, sign, POST, decide, record, acknowledge. No database connection is held during the POST; the lease
 * keeps others off, and a process that dies leaves a lease that ends and a delivery that the sweep finds.
 */
export function createDeliver(options: DeliverOptions): Worker {
  const { tracing = noTracing } = options;
  const { broker, store, log, metrics } = options;

  const leases: Batcher<string, LeasedDelivery | undefined> = createBatcher({
    maxItems: options.concurrency,
    async handle(ids) {
      const leased = await store.lease({ ids, leaseMs: options.timeoutMs + leaseMarginMs });
      const byId = new Map(leased.map((delivery) => [delivery.id, delivery]));
      if (byId.size < new Set(ids).size) await store.settleUnleasable(ids.filter((id) => !byId.has(id)));
      // The same id twice in one batch is one delivery, for whoever came first.
      return ids.map((id) => {
        const delivery = byId.get(id);
        byId.delete(id);
        return delivery;
      });
    },
  });

  const records: Batcher<Outcome, boolean> = createBatcher({
    maxItems: options.concurrency,
    async handle(outcomes) {
      const written = await store.record(outcomes);
      return outcomes.map(({ lease }) => written.has(lease.id));
    },
  });

  const postponements: Batcher<Postponement, void> = createBatcher({
    maxItems: options.concurrency,
    async handle(items) {
      await store.postpone(items);
      options.onRetry(Math.min(...items.map(({ delayMs }) => delayMs)));
      log.debug({ event: "delivery.postponed", deliveries: items.length }, "deliveries postponed");
      return items.map(() => undefined);
    },
  });

  /**
   * Writes an outcome, and while the database is away tries again for as long as the lease holds: given up at once, every POST
   * that was in flight would be made twice.
   */
  async function record(outcome: Outcome, signal: AbortSignal): Promise<boolean> {
    const giveUpAt = performance.now() + leaseMarginMs - recordRetryMs;
    for (;;) {
      try {
        return await records.add(outcome);
      } catch (error) {
        const isAway = databaseFaultOf(error).kind === "unavailable";
        if (!isAway || signal.aborted || performance.now() > giveUpAt) throw error;
        log.warn(
          { reason: messageOf(error), delivery: outcome.lease.id },
          "outcome not written; trying again",
        );
        await pause(recordRetryMs, signal);
      }
    }
  }

  async function handle(message: IncomingMessage, lane: Lane, signal: AbortSignal): Promise<void> {
    const id = deliveryIdOf(message);
    if (id === undefined) {
      const [outcome] = await broker.publish([deadMessage(message, "not a delivery")]);
      if (outcome?.kind !== "confirmed") throw new Error("A dead letter was not confirmed.");
      metrics.deadLettered("foreign", 1);
      return;
    }
    const delivery = await leases.add(id);
    if (delivery !== undefined) await handleLeased(delivery, lane, signal);
  }

  async function handleLeased(delivery: LeasedDelivery, lane: Lane, signal: AbortSignal): Promise<void> {
    if (!mayReceive(delivery)) {
      const lastError = "The subscriber may no longer see this record.";
      await records.add({ lease: delivery, status: "cancelled", attempt: delivery.attempt, lastError });
      return;
    }
    const admitted = await options.admission.admit(delivery, lane);
    if (admitted.kind === "wait") await putOff(delivery, admitted);
    // It waited for a slot while the process began to stop: another one takes it up.
    else if (signal.aborted) {
      admitted.done();
      await postponements.add({ lease: delivery, delayMs: 0, reason: undefined });
    } else await attempt(delivery, admitted, signal);
  }

  /** Makes the delivery wait for its receiver, or gives it up when it has waited for too long. */
  async function putOff(
    delivery: LeasedDelivery,
    { delayMs, reason }: Extract<Admitted, { kind: "wait" }>,
  ): Promise<void> {
    metrics.postponed(reason);
    const host = hostOf(delivery.url);
    const { backoffMs } = options.scheduleOf(delivery.resource);
    const waitedMs = Date.now() - delivery.updatedAt.getTime();
    if (reason === "busy" || waitedMs <= longestPostponementMs({ ...delivery, backoffMs })) {
      const shown = reason === "silent" ? `Waiting for ${host}, which does not answer.` : undefined;
      await postponements.add({ lease: delivery, delayMs, reason: shown });
      return;
    }
    const lastError = `Given up after ${delivery.attempt} of ${delivery.maxAttempts} attempts: ${host} has not answered anything for too long.`;
    const isWritten = await records.add({
      lease: delivery,
      status: "failed",
      attempt: delivery.attempt,
      lastError,
    });
    if (isWritten) await bury({ ...delivery, lastError });
  }

  async function attempt(
    delivery: LeasedDelivery,
    { done }: Extract<Admitted, { kind: "go" }>,
    signal: AbortSignal,
  ): Promise<void> {
    const { eventUuid, uuid, url, user } = delivery;
    const body = [delivery.body];
    const ended = metrics.attemptStarted();
    let result: AttemptResult | undefined;
    try {
      const secret = options.decryptSecret(delivery.encryptedSecret);
      const headers = signedHeaders({ secret, body, eventUuid, deliveryUuid: uuid });
      const sent = await sendInSpan({
        tracing,
        delivery,
        post: { url, headers, body },
        send: (post) => options.send(post, user),
      });
      if (sent.kind === "made") result = sent.result;
    } finally {
      done(result);
      ended();
    }
    if (result === undefined) {
      // As long as look-ups on dead name servers take, and not all at once.
      await putOff(delivery, { kind: "wait", delayMs: 1_000 + options.random() * 4_000, reason: "busy" });
      return;
    }
    const lagMs = performance.now() - delivery.happenedAtMs;
    const step = decide({
      attempt: delivery.attempt + 1,
      maxAttempts: delivery.maxAttempts,
      backoffMs: options.scheduleOf(delivery.resource).backoffMs,
      jitter: options.jitter,
      result,
      random: options.random,
    });
    const outcome = toOutcome(delivery, result, step);
    metrics.attempted({
      outcome: step.kind,
      error: result.error ?? "none",
      durationMs: result.durationMs,
      attempt: outcome.attempt,
      lagMs: delivery.isManual ? undefined : lagMs,
    });
    const isWritten = await record(outcome, signal);
    log.info(attemptLine({ delivery, outcome, result, isWritten, lagMs }), "delivery attempt");
    if (isWritten && step.kind === "retry") options.onRetry(step.delayMs);
    if (isWritten && step.kind === "failed")
      await bury({ ...delivery, lastError: outcome.lastError ?? null });
  }

  /** The rule of the fan-out, once more: a user who lost the right since then gets nothing. */
  function mayReceive({ resource, user, ownerId }: LeasedDelivery): boolean {
    return ownerId === String(user.id) || options.isAdminFor(resource, user);
  }

  async function bury(delivery: LeasedDelivery & { readonly lastError: string | null }): Promise<void> {
    metrics.failed();
    const [outcome] = await broker.publish([deadDeliveryMessage(delivery)]);
    // Otherwise the sweep publishes it.
    if (outcome?.kind !== "confirmed") return;
    metrics.deadLettered("spent", 1);
    await store.markDeadLettered([delivery.id]);
  }

  return {
    name: "deliver",
    async run(signal) {
      const inFlight = new Set<Promise<void>>();
      const onMessage = (message: IncomingMessage, lane: Lane): void => {
        const done = handle(message, lane, signal)
          .then(
            () => message.ack(),
            async (error: unknown) => {
              log.error({ err: error }, "delivery not handled; giving the message back");
              // Without the pause the message would come straight back, for as long as the database is away.
              await pause(1_000, signal);
              message.requeue();
            },
          )
          .finally(() => inFlight.delete(done));
        inFlight.add(done);
      };
      const shares = laneShares(options.concurrency);
      const consumptions = await Promise.all(
        (["first", "retry"] as const).map((lane) =>
          broker.consume({
            queue: queues[lane],
            prefetch: shares[lane],
            onMessage: (message) => onMessage(message, lane),
          }),
        ),
      );
      await aborted(signal);
      await Promise.all(consumptions.map((consumption) => consumption.stop()));
      await Promise.all(inFlight);
    },
  };
}

function toOutcome(delivery: LeasedDelivery, result: AttemptResult, step: NextStep): Outcome {
  const made = { lease: delivery, attempt: delivery.attempt + 1, result };
  const lastError = result.detail ?? result.error ?? "failed";
  switch (step.kind) {
    case "delivered":
      return { ...made, status: "delivered" };
    case "retry":
      return { ...made, status: "retrying", delayMs: step.delayMs, lastError };
    case "failed":
      return { ...made, status: "failed", lastError };
  }
}
