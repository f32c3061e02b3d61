import type { SealedSigning, Signing } from "../../subscriptions/signing.ts";
import { createBatcher, type Batcher } from "../../kit/batcher.ts";
import { createCountedReport } from "../../kit/counted-report.ts";
import { messageOf } from "../../kit/errors.ts";
import { createFairTurns } from "./fair-turns.ts";
import type { Broker } from "../../broker/broker.ts";
import type { DeliveryMetrics } from "../../telemetry/metrics/deliveries.ts";
import { noTracing, type Tracing } from "../../telemetry/tracing.ts";
import { aborted, type Worker } from "../../kit/worker.ts";
import type { Done, Reservation } from "../admission/admission.ts";
import { attemptLine } from "./attempt-line.ts";
import { deliveryBody, sizeOf } from "./body.ts";
import { decide } from "./decide.ts";
import type { DeliveryInFlight, PayloadBytes } from "./delivery-in-flight.ts";
import { erasedReason, type AttemptResult, type NextStep } from "../delivery.ts";
import type { Figures } from "../figures.ts";
import { deadDeliveryMessage } from "../messages.ts";
import { isOld, renewFlight, type RenewalOptions } from "./renew-flight.ts";
import { createOutcomeWriter, type OutcomeWriter, type OutcomeWriterOptions } from "./outcome-writer.ts";
import type { ScheduleOf } from "./schedule.ts";
import type { Sender } from "./send.ts";
import { signedHeaders } from "./sign.ts";
import { sendInSpan } from "./spans.ts";
import type { SubscriptionHealth } from "../subscription-health.ts";
import type { DeliveryStore } from "../store.ts";
import { databaseFaultOf } from "../../db/database-fault.ts";
import { toRequeued, type Outcome, type RequeuedDelivery } from "../outcome.ts";

/** Makes attempts: sign, POST, decide, record. */
export interface Attempts extends Worker {
  /** Makes an attempt when the reservation gets a slot; otherwise puts the delivery back. */
  start(delivery: DeliveryInFlight, reservation: Reservation, ends?: AttemptEnds): void;
  /**
   * Writes an outcome that was decided without an attempt. Resolves after the write, even when it
   * fails.
   */
  settle(delivery: Pick<DeliveryInFlight, "flight">, outcome: Outcome): Promise<void>;
  /** Puts a delivery back into the queue. */
  putBack(delivery: Pick<DeliveryInFlight, "flight">, back: RequeuedDelivery): void;
  /** Resolves when no delivery is in flight. */
  drain(): Promise<void>;
}

/**
 * Puts a delivery back for which no attempt was made.
 *
 * @param delayMs How long the delivery must wait; undefined when it waits for a slot.
 */
type PutBack = (delayMs: number | undefined) => void;

export interface AttemptEnds {
  /** Called before the delivery's slot is free again. Default: puts it into the queue. */
  readonly putBack?: PutBack | undefined;
  /** Called when the slot is free again. The argument tells whether there was a POST. */
  readonly onEnd?: ((isMade: boolean) => void) | undefined;
}

export interface AttemptsOptions extends OutcomeWriterOptions, RenewalOptions {
  readonly broker: Pick<Broker, "publish">;
  readonly store: OutcomeWriterOptions["store"] &
    RenewalOptions["store"] &
    Pick<DeliveryStore, "dataOf" | "markDeadLettered">;
  readonly send: Sender["send"];
  /**
   * Decrypts the secrets and own headers of the requests; throws when they were encrypted with
   * another key.
   */
  readonly openSigning: (sealed: SealedSigning) => Signing;
  readonly scheduleOf: ScheduleOf;
  readonly jitter: number;
  readonly metrics: DeliveryMetrics;
  readonly tracing?: Tracing;
  readonly health: Pick<SubscriptionHealth, "note">;
  readonly figures: Pick<Figures, "attempted">;
  /** Called when a slot is free again. */
  readonly onFree: () => void;
  readonly random: () => number;
}

const mostAtOnce = 200;
/**
 * Most attempts that begin in one turn of the event loop, in about 2 ms. Without a limit, 10,000
 * deliveries a second of one user made each step of another user's event take 14 ms.
 */
const begunPerTurn = 8;
/** Bytes of a body that take about as long as the rest of an attempt. */
const bytesOfAttempt = 64 * 1024;
/** Wait after an attempt that could not begin, or that failed for a fault of this process. */
const unmadeDelayMs = 2_000;
/** Delay of a delivery that no key decrypts, until a process with the key takes it. */
const unsignedDelayMs = 30_000;

/**
 * Returns how long a process may have a delivery in flight before it counts as dead: the POST, and
 * 15 s for the wait for a slot, the decision and the write of the outcome.
 */
export function flightMsOf(timeoutMs: number): number {
  return timeoutMs + 15_000;
}

interface State {
  readonly options: AttemptsOptions;
  readonly writer: OutcomeWriter;
  readonly data: Batcher<DeliveryInFlight, PayloadBytes | undefined>;
  /** Gives users turns to begin attempts. */
  readonly nextTurn: ReturnType<typeof createFairTurns>;
  /** Reports a delivery that this process has no key for. */
  readonly reportUnsigned: (one: { readonly subscriptionId: number; readonly reason: string }) => void;
  isStopping: boolean;
}

/**
 * Creates the worker that makes attempts. It holds no database connection during a POST. When a
 * process dies, its flights end, and their deliveries are due again.
 */
export function createAttempts(options: AttemptsOptions): Attempts {
  const writer = createOutcomeWriter(options);
  const data: State["data"] = createBatcher({
    maxItems: mostAtOnce,
    async handle(deliveries) {
      const found = await options.store.dataOf(deliveries);
      return deliveries.map(({ eventUuid }) => found.get(eventUuid));
    },
  });
  const nextTurn = createFairTurns(begunPerTurn);
  // These are retried until a process has the key. With a line for each, 15,000 of them wrote 330
  // lines a second.
  const reportUnsigned: State["reportUnsigned"] = createCountedReport((deliveries, one) =>
    options.log.error(
      { event: "delivery.unsigned", deliveries, ...one },
      "deliveries could not be signed; they wait for a process that has the key of their webhook",
    ),
  );
  const state: State = { options, writer, data, nextTurn, reportUnsigned, isStopping: false };
  return {
    name: "deliver",
    start: (delivery, reservation, { putBack = intoQueue(state, delivery), onEnd } = {}) =>
      start(state, { delivery, putBack, onEnd }, reservation),
    async settle({ flight }, outcome) {
      const written = writer.record(flight, outcome);
      writer.keep(outcome.id, written);
      await written.catch(() => undefined);
    },
    putBack: ({ flight }, back) => writer.putBack(flight, back),
    drain: () => writer.drain(),
    async run(signal) {
      await aborted(signal);
      state.isStopping = true;
      writer.stop();
      await writer.drain();
    },
  };
}

function intoQueue({ writer }: State, delivery: DeliveryInFlight): PutBack {
  return (delayMs) => writer.putBack(delivery.flight, toRequeued(delivery, delayMs));
}

interface Started extends AttemptEnds {
  readonly delivery: DeliveryInFlight;
  readonly putBack: PutBack;
}

function start(state: State, { delivery, putBack, onEnd }: Started, reservation: Reservation): void {
  const { writer, options } = state;
  if (state.isStopping) {
    putBack(0);
    reservation.leave();
    return onEnd?.(false);
  }
  // Decrypts before it takes a slot, since other deliveries of the receiver and the user may wait
  // for one.
  const signing = signingOf(state, delivery);
  if (signing === undefined) {
    options.metrics.postponed("unsigned");
    putBack(unsignedDelayMs);
    reservation.leave();
    onEnd?.(false);
    return options.onFree();
  }
  reservation.enter({
    giveUp(reason) {
      options.metrics.postponed(reason);
      putBack(undefined);
      onEnd?.(false);
    },
    begin(done) {
      const end: Done = (result) => {
        done(result);
        onEnd?.(result !== undefined);
      };
      writer.keep(delivery.id, attempt(state, { delivery, signing, putBack }, end));
    },
  });
}

/**
 * Decrypts the secrets and own headers of a delivery's requests. Undefined when no key decrypts
 * them.
 */
function signingOf(
  { options, reportUnsigned }: State,
  { subscriptionId, subscription }: DeliveryInFlight,
): Signing | undefined {
  try {
    return options.openSigning(subscription.signing);
  } catch (error) {
    reportUnsigned({ subscriptionId, reason: messageOf(error) });
    return undefined;
  }
}

/** A delivery with its decrypted secrets and headers. */
interface Signed extends Started {
  readonly signing: Signing;
}

async function attempt(state: State, signed: Signed, done: Done): Promise<void> {
  const { delivery, putBack } = signed;
  const { metrics, onFree } = state.options;
  let made: MadeAttempt | Unmade | undefined;
  const ended = metrics.attemptStarted();
  try {
    made = await post(state, signed);
    if (made === "unmade") {
      metrics.postponed("busy");
      putBack(unmadeDelayMs);
    } else if (made === "stopped") putBack(0);
  } catch (error) {
    // A fault outside the database may last. The delivery goes into the queue, so that others do
    // not wait for its end.
    const isPassing = databaseFaultOf(error).kind === "unavailable";
    (isPassing ? putBack : intoQueue(state, delivery))(unmadeDelayMs);
    throw error;
  } finally {
    done(typeof made === "object" ? made.result : undefined);
    ended();
    onFree();
  }
  // The deliveries of a flight that has ended are due again, or in flight elsewhere.
  if (made === "unmade" || made === "stopped" || made === "late") return;
  try {
    await (made === "erased" ? recordErased(state, delivery) : recordAttempt(state, delivery, made));
  } catch (error) {
    intoQueue(state, delivery)(unmadeDelayMs);
    throw error;
  }
}

async function recordErased({ writer }: State, delivery: DeliveryInFlight): Promise<void> {
  const { id, uuid, attempt: attemptsBefore, flight } = delivery;
  await writer.record(flight, { id, uuid, attemptsBefore, status: "cancelled", lastError: erasedReason });
}

/**
 * Decides the next step after an attempt, writes the outcome, and reports it to the log, metrics
 * and figures.
 */
async function recordAttempt(
  { writer, options }: State,
  delivery: DeliveryInFlight,
  { result, body, payload }: MadeAttempt,
): Promise<void> {
  const { metrics, log, onQueued, jitter, random } = options;
  const { resource, maxAttempts } = delivery;
  const attemptNumber = delivery.attempt + 1;
  const lagMs = performance.now() - delivery.happenedAtMs;
  const { backoffMs } = options.scheduleOf(resource);
  const step = decide({ attempt: attemptNumber, maxAttempts, backoffMs, jitter, result, random });
  const outcome = toOutcome(delivery, result, step);
  metrics.attempted({
    outcome: step.kind,
    error: result.error ?? "none",
    durationMs: result.durationMs,
    attempt: attemptNumber,
    lagMs: delivery.isPaced ? undefined : lagMs,
  });
  const status = await writer.record(delivery.flight, outcome);
  const isWritten = status !== undefined;
  const line = attemptLine(delivery, outcome, { isWritten, lagMs, bytesOut: sizeOf(body) });
  if (result.error === undefined) log.info(line, "delivery attempt");
  else log.warn(line, "delivery attempt failed");
  if (!isWritten) return;
  options.figures.attempted(delivery.subscription.user.id, result.error === undefined);
  options.health.note({ id: delivery.subscriptionId, url: delivery.subscription.url }, result);
  if (step.kind === "retry") onQueued(step.delayMs);
  // A delivery that was cancelled during its POST gets no dead letter, because its record may be
  // erased.
  if (status === "failed") {
    const lastError = outcome.lastError ?? null;
    await deadLetter(options, deadDeliveryMessage({ ...delivery, lastError, ...payload }), delivery.id);
  }
}

interface MadeAttempt {
  readonly result: AttemptResult;
  readonly body: readonly Uint8Array[];
  readonly payload: PayloadBytes;
}

/**
 * Reason why no POST was made: the sender could not make it now, the record was erased, this
 * process stops, or the flight has ended.
 */
type Unmade = "unmade" | "erased" | "stopped" | "late";

/** Signs and POSTs a delivery when it is the user's turn. */
async function post(state: State, { delivery, signing }: Signed): Promise<MadeAttempt | Unmade> {
  const { options, data, nextTurn } = state;
  const { event, resource, timestamp, uuid, eventUuid, subscription } = delivery;
  const found = delivery.payload ?? (await data.add(delivery));
  if (found === undefined) return "erased";
  const payload = { data: found.data, previous: delivery.hasPrevious ? found.previous : undefined };
  const body = deliveryBody({ event, resource, eventUuid, uuid, ...payload, timestamp });
  // Runs after the read, which returns the records of up to 200 attempts in one turn of the event
  // loop.
  const turn = nextTurn(String(subscription.user.id), Math.max(1, sizeOf(body) / bytesOfAttempt));
  if (turn !== undefined) await turn;
  if (isOld(delivery.flight) && !(await renewFlight(options, delivery.flight))) return "late";
  if (state.isStopping) return "stopped";
  const headers = signedHeaders({ signing, body, eventUuid, uuid, sentAt: new Date() });
  const sent = await sendInSpan({
    tracing: options.tracing ?? noTracing,
    delivery,
    post: { url: subscription.url, headers, body },
    send: (request) => options.send(request, subscription.user),
  });
  return sent.kind === "made" ? { result: sent.result, body, payload } : "unmade";
}

/** Publishes the dead letter of a failed delivery. If this fails, the sweep publishes it later. */
async function deadLetter(
  { broker, store, metrics, log }: AttemptsOptions,
  message: ReturnType<typeof deadDeliveryMessage>,
  id: string,
): Promise<void> {
  metrics.failed();
  const [outcome] = await broker.publish([message]);
  if (outcome?.kind !== "confirmed") return;
  metrics.deadLettered("spent", 1);
  try {
    await store.markDeadLettered([id]);
  } catch (error) {
    log.warn({ err: error, delivery: id }, "dead letter not noted down; the sweep publishes it again");
  }
}

function toOutcome(delivery: DeliveryInFlight, result: AttemptResult, step: NextStep): Outcome {
  const { id, uuid, attempt: attemptsBefore, trigger, subscription } = delivery;
  const made = { id, uuid, attemptsBefore, result, trigger, url: subscription.url } as const;
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
