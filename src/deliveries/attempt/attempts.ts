import { createBatcher, type Batcher } from "../../kit/batcher.ts";
import type { Broker } from "../../broker/broker.ts";
import { databaseFaultOf } from "../../db/prisma-errors.ts";
import { messageOf } from "../../kit/errors.ts";
import type { Log } from "../../telemetry/log.ts";
import type { DeliveryMetrics } from "../../telemetry/metrics/deliveries.ts";
import { noTracing, type Tracing } from "../../telemetry/tracing.ts";
import { aborted, pause, type Worker } from "../../kit/worker.ts";
import type { Place, Done } from "../admission/admission.ts";
import { attemptLine } from "./attempt-line.ts";
import { deliveryBody } from "./body.ts";
import { decide } from "./decide.ts";
import type { AttemptResult, NextStep } from "../delivery.ts";
import { land, landingOf, type Flight } from "../flights.ts";
import { deadDeliveryMessage } from "../messages.ts";
import type { ScheduleOf } from "./schedule.ts";
import type { Sender } from "./send.ts";
import { signedHeaders } from "./sign.ts";
import { sendInSpan } from "./spans.ts";
import type { DeliveryStore, Outcome, Return, TakenDelivery } from "../store.ts";

/** A delivery that this process has in hand, with an active subscription. */
export interface DeliveryInHand extends Omit<
  TakenDelivery,
  "subscription" | "bytes" | "waitedMs" | "ownerId" | "eventAgeMs"
> {
  readonly subscription: Omit<NonNullable<TakenDelivery["subscription"]>, "isActive">;
  /** Of the event, on the clock of `performance.now()`: its age is the database's, whose time of day need not be this machine's. */
  readonly happenedAtMs: number;
  /** JSON of the record; undefined when it is still in the database. */
  readonly data: Uint8Array | undefined;
  readonly flight: Flight;
}

/** Makes attempts: sign, POST, decide, record. */
export interface Attempts extends Worker {
  /** Makes an attempt as soon as the place has a slot, or puts the delivery back into the queue. */
  start(delivery: DeliveryInHand, place: Place): void;
  /** Writes what is decided without an attempt. */
  settle(delivery: Pick<DeliveryInHand, "flight">, outcome: Outcome): void;
  /** Puts a delivery back into the queue. */
  putBack(delivery: Pick<DeliveryInHand, "flight">, back: Return): void;
  /** Resolves when nothing is in hand. */
  drain(): Promise<void>;
}

export interface AttemptsOptions {
  readonly broker: Pick<Broker, "publish">;
  readonly store: Pick<DeliveryStore, "dataOf" | "record" | "putBack" | "markDeadLettered">;
  readonly send: Sender["send"];
  /** The signing secret of an encrypted one; throws when the key is not the one it was encrypted with. */
  readonly decryptSecret: (sealed: Uint8Array) => string;
  readonly scheduleOf: ScheduleOf;
  readonly jitter: number;
  readonly log: Log;
  readonly metrics: DeliveryMetrics;
  readonly tracing?: Tracing;
  /** Told of everything that went into the queue, with its wait in ms; undefined for what waits for a slot. */
  readonly onQueued: (delayMs: number | undefined) => void;
  /** Told when a slot has fallen free. */
  readonly onFree: () => void;
  readonly random: () => number;
}

const mostAtOnce = 200;
// Within what a flight has besides the POST: see `flightMsOf`.
const recordForMs = 14_000;
const recordRetryMs = 500;
/** An attempt that could not even begin, and one that failed for a fault of this process. */
const unmadeDelayMs = 2_000;

/**
 * How long a process may have a delivery in hand before it counts as dead: the POST, and what comes besides (the wait for a slot, the
 * decision and the write of its outcome).
 */
export function flightMsOf(timeoutMs: number): number {
  return timeoutMs + 15_000;
}

interface Write<T> {
  readonly flight: Flight;
  readonly item: T;
}

/** No database connection is held during a POST. A process that dies leaves a flight that ends, and its deliveries are due again. */
export function createAttempts(options: AttemptsOptions): Attempts {
  const { broker, store, log, metrics, tracing = noTracing } = options;
  const inHand = new Set<Promise<void>>();
  let isStopping = false;

  const data: Batcher<string, Uint8Array | undefined> = createBatcher({
    maxItems: mostAtOnce,
    async handle(eventIds) {
      const found = await store.dataOf([...new Set(eventIds)]);
      const buffers = new Map([...found].map(([id, text]) => [id, Buffer.from(text)]));
      return eventIds.map((id) => buffers.get(id));
    },
  });

  const records: Batcher<Write<Outcome>, boolean> = createBatcher({
    maxItems: mostAtOnce,
    async handle(writes) {
      const flights = writes.map(({ flight }) => flight);
      const outcomes = writes.map(({ item }) => item);
      const landed = landingOf(flights);
      const isWhole = !flights.some(({ isPartlyWritten }) => isPartlyWritten);
      const written = await store.record({ outcomes, landed, isWhole });
      endOthers(flights, landed);
      return outcomes.map(({ id }) => written.has(id));
    },
  });

  const returns: Batcher<Write<Return>, void> = createBatcher({
    maxItems: mostAtOnce,
    async handle(writes) {
      const flights = writes.map(({ flight }) => flight);
      const landed = landingOf(flights);
      await store.putBack({
        returns: writes.map(({ flight, item }) => ({ ...item, flightId: flight.id })),
        landed,
      });
      endOthers(flights, landed);
      for (const { item } of writes) options.onQueued(item.delayMs);
      return writes.map(() => undefined);
    },
  });

  function endOthers(flights: readonly Flight[], landed: readonly string[]): void {
    const others = land(flights, landed);
    if (others.length > 0)
      keep(`of the flights ${others.join()}`, store.putBack({ returns: [], landed: others }));
  }

  /**
   * Writes something, and while the database is away tries again for as long as the flight goes on: given up at once, every POST that was
   * in flight would be made twice.
   */
  async function persist<T>(write: () => Promise<T>, id: string): Promise<T> {
    const giveUpAt = performance.now() + recordForMs;
    for (;;) {
      try {
        return await write();
      } catch (error) {
        const isAway = databaseFaultOf(error).kind === "unavailable";
        if (!isAway || isStopping || performance.now() > giveUpAt) throw error;
        log.warn({ reason: messageOf(error), delivery: id }, "outcome not written; trying again");
        await pause(recordRetryMs, new AbortController().signal);
      }
    }
  }

  /** Keeps the process from ending before it. What fails is found again when the flight ends. */
  function keep(id: string, work: Promise<unknown>): void {
    const done = work
      .then(
        () => undefined,
        (error: unknown) =>
          log.error(
            { err: error, delivery: id },
            "delivery not handled; it is due again when its flight ends",
          ),
      )
      .finally(() => inHand.delete(done));
    inHand.add(done);
  }

  function putBack({ flight }: Pick<DeliveryInHand, "flight">, back: Return): void {
    keep(
      back.id,
      persist(() => returns.add({ flight, item: back }), back.id),
    );
  }

  async function attempt(delivery: DeliveryInHand, done: Done): Promise<void> {
    const { event, resource, timestamp, uuid, eventUuid, subscription } = delivery;
    let result: AttemptResult | undefined;
    let body: readonly Uint8Array[];
    const ended = metrics.attemptStarted();
    try {
      const record = delivery.data ?? (await data.add(delivery.eventId));
      if (record === undefined) throw new Error(`There is no data of the event ${delivery.eventId}.`);
      body = deliveryBody({ event, resource, eventUuid, deliveryUuid: uuid, data: record, timestamp });
      const secret = options.decryptSecret(subscription.encryptedSecret);
      const headers = signedHeaders({ secret, body, eventUuid, deliveryUuid: uuid });
      const sent = await sendInSpan({
        tracing,
        delivery: { ...delivery, url: subscription.url },
        post: { url: subscription.url, headers, body },
        send: (post) => options.send(post, subscription.user),
      });
      if (sent.kind === "made") result = sent.result;
    } finally {
      done(result);
      ended();
      options.onFree();
    }
    if (result === undefined) {
      metrics.postponed("busy");
      return putBack(delivery, { id: delivery.id, delayMs: unmadeDelayMs });
    }
    const bytesOut = body.reduce((sum, part) => sum + part.length, 0);
    const lagMs = performance.now() - delivery.happenedAtMs;
    const step = decide({
      attempt: delivery.attempt + 1,
      maxAttempts: delivery.maxAttempts,
      backoffMs: options.scheduleOf(resource).backoffMs,
      jitter: options.jitter,
      result,
      random: options.random,
    });
    const outcome = toOutcome(delivery, result, step);
    metrics.attempted({
      outcome: step.kind,
      error: result.error ?? "none",
      durationMs: result.durationMs,
      attempt: delivery.attempt + 1,
      lagMs: delivery.isManual ? undefined : lagMs,
    });
    const { flight } = delivery;
    const isWritten = await persist(() => records.add({ flight, item: outcome }), delivery.id);
    log.info(attemptLine({ delivery, outcome, result, isWritten, lagMs, bytesOut }), "delivery attempt");
    if (!isWritten) return;
    if (step.kind === "retry") options.onQueued(step.delayMs);
    if (step.kind === "failed") {
      const lastError = outcome.lastError ?? null;
      const record = Buffer.concat(body.slice(1, -1));
      await bury(deadDeliveryMessage({ ...delivery, lastError, data: record }), delivery.id);
    }
  }

  async function bury(message: ReturnType<typeof deadDeliveryMessage>, id: string): Promise<void> {
    metrics.failed();
    const [outcome] = await broker.publish([message]);
    // Otherwise the sweep publishes it.
    if (outcome?.kind !== "confirmed") return;
    metrics.deadLettered("spent", 1);
    try {
      await store.markDeadLettered([id]);
    } catch (error) {
      log.warn({ err: error, delivery: id }, "dead letter not noted down; the sweep publishes it again");
    }
  }

  async function drain(): Promise<void> {
    while (inHand.size > 0) await Promise.all(inHand);
  }

  return {
    name: "deliver",
    start(delivery, place) {
      const back = (delayMs: number | undefined): void => putBack(delivery, { id: delivery.id, delayMs });
      if (isStopping) {
        place.leave();
        return back(0);
      }
      place.enter({
        giveUp(reason) {
          metrics.postponed(reason);
          back(undefined);
        },
        begin(done) {
          if (isStopping) {
            done();
            return back(0);
          }
          keep(
            delivery.id,
            attempt(delivery, done).catch((error: unknown) => {
              putBack(delivery, { id: delivery.id, delayMs: unmadeDelayMs });
              throw error;
            }),
          );
        },
      });
    },
    settle({ flight }, outcome) {
      keep(
        outcome.id,
        persist(() => records.add({ flight, item: outcome }), outcome.id),
      );
    },
    putBack,
    drain,
    async run(signal) {
      await aborted(signal);
      isStopping = true;
      await drain();
    },
  };
}

function toOutcome(delivery: DeliveryInHand, result: AttemptResult, step: NextStep): Outcome {
  const { id, uuid, attempt: attemptsBefore } = delivery;
  const made = { id, uuid, attemptsBefore, result };
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
