import type { Configuration } from "./configuration.ts";
import { createAdmission, type Admission } from "../deliveries/admission/admission.ts";
import { longestWaitMs } from "../deliveries/attempt/decide.ts";
import { createAttempts, flightMsOf, type Attempts } from "../deliveries/attempt/attempts.ts";
import { createSender } from "../deliveries/attempt/send.ts";
import { createFanOut, type FanOutOptions } from "../deliveries/fan-out.ts";
import { createFigures, type Figures } from "../deliveries/figures.ts";
import { createRates, type Rates } from "../deliveries/admission/rates.ts";
import { createSubscriptionHealth, type SubscriptionHealth } from "../deliveries/subscription-health.ts";
import { serviceActor } from "../kit/actor.ts";
import { createFairBudget } from "../subscriptions/fair-budget.ts";
import { createDeliveryStore } from "../deliveries/store.ts";
import { createHeldSender } from "../deliveries/held-sender.ts";
import { createHeldStore } from "../deliveries/held-store.ts";
import { createAnnounce } from "../deliveries/messages.ts";
import { createIndexSql } from "../db/sql.ts";
import { createRetention } from "../deliveries/retention.ts";
import { createSweep, type Sweep } from "../deliveries/sweep.ts";
import { createEligibilityOf } from "./eligibility.ts";
import type { Infrastructure } from "./infrastructure.ts";
import { createScheduleOf } from "./schedules.ts";
import { stepsOfDispatcher } from "../subscriptions/filter-answers.ts";
import { createWebhookFilters } from "../subscriptions/filters.ts";
import { isRegistered } from "../subscriptions/service-events.ts";
import { createOpenSigning } from "../subscriptions/signing.ts";
import { createSubscriberFinder } from "../subscriptions/find-subscribers.ts";
import { createTokensPruner } from "../users/prune-tokens.ts";
import { createChangesPruner } from "../subscriptions/prune-changes.ts";
import type { Assembly } from "./workers.ts";
import type { Worker } from "../kit/worker.ts";

/**
 * Creates the parts of `svc dispatcher` for one configuration: it fans events out, and sends
 * deliveries. Starts nothing, so that a reload can still be refused.
 */
export function createDispatcher(infrastructure: Infrastructure, configuration: Configuration): Assembly {
  const { database, log, metrics, tracing, dispatcherSql, broker, seal, secretBox, sharedSlots } =
    infrastructure;
  const { config, definitions } = configuration;
  const { webhooks } = config;
  const sender = createSender({ ...webhooks, maxSockets: webhooks.concurrency });
  const callbacks: Callbacks = { onWait: (ms) => sweep.onQueued(ms), drained: () => attempts.drain() };
  const admission = createAdmissionOf(infrastructure, configuration, callbacks);
  /** Options that fan-out, attempts and sweep share. */
  const shared = {
    broker,
    announce: createAnnounce({
      broker,
      // With `receiverConcurrency`, perhaps only one dispatcher has a slot of the receiver.
      dispatchers: () => (webhooks.receiverConcurrency === undefined ? 1 : sharedSlots.dispatchers()),
    }),
    store: createDeliveryStore({ sql: dispatcherSql }),
    scheduleOf: createScheduleOf(configuration),
    log,
    metrics: { ...metrics.events, ...metrics.deliveries },
  };
  const flightMs = flightMsOf(webhooks.timeoutMs);
  const eligibility = createEligibilityOf(infrastructure, definitions);
  const { health, rates, figures } = createStateKeepers(infrastructure, configuration, callbacks);
  const attempts: Attempts = createAttempts({
    ...shared,
    health,
    figures,
    send: (post, user) => sender.send(post, user),
    openSigning: createOpenSigning(secretBox),
    jitter: webhooks.jitter,
    flightMs,
    metrics: metrics.deliveries,
    tracing,
    onQueued: (delayMs) => sweep.onQueued(delayMs),
    onFree: () => sweep.onFree(),
    random: Math.random,
  });
  const isKnown = (resource: string): boolean => isRegistered(definitions, resource);
  const handing = { ...shared, admission, rates, attempts, eligibility, isKnown, flightMs };
  const sweep: Sweep = createSweep({
    ...handing,
    metrics: metrics.deliveries,
    intervalMs: webhooks.sweepIntervalMs,
    requeueAfterMs: webhooks.requeueAfterMs,
    // An unknown resource has the schedule of the settings.
    longestWaitMs: longestWaitMs(
      [...definitions.keys(), ""].flatMap((name) => shared.scheduleOf(name).backoffMs),
      webhooks.jitter,
    ),
  });
  const heldSender = createHeldSender({
    ...handing,
    holdForMs: webhooks.holdForMs,
    intervalMs: webhooks.sweepIntervalMs,
    // A sixteenth of the dispatcher's concurrency is for held deliveries.
    atOnce: Math.max(1, Math.floor(webhooks.concurrency / 16)),
    held: createHeldStore({ sql: dispatcherSql, indexSql: createIndexSql(database.dispatcher) }),
  });
  const fanOut = createFanOut({
    ...handing,
    ...findingOf(infrastructure, configuration),
    seal,
    figures,
    onParked: () => sweep.onQueued(undefined),
    tracing,
  });
  const keepers = [health, figures, ...admission.workers, ...prunersOf(infrastructure, configuration)];
  // Until then a reload can be refused, and the previous dispatcher continues.
  const takeOver: Worker["run"] = (signal) => {
    metrics.receivers.watchBreakers(() => admission.breakerCounts());
    sharedSlots.watch(() => sweep.onShares());
    return attempts.run(signal);
  };
  const workers = [fanOut, { name: attempts.name, run: takeOver }, sweep, heldSender, ...keepers];
  return { workers, close: () => sender.close() };
}

const nowMs = (): number => performance.now();

/** Callbacks into the sweep and the attempts, which are created after their callers. */
interface Callbacks {
  readonly onWait: (ms: number) => void;
  readonly drained: () => Promise<void>;
}

/** Creates the keepers of the health, rates and figures of subscriptions in the database. */
function createStateKeepers(
  { dispatcherSql: sql, log }: Infrastructure,
  { config }: Configuration,
  { onWait, drained }: Callbacks,
): { readonly health: SubscriptionHealth; readonly rates: Rates; readonly figures: Figures } {
  const { disableAfterMs } = config.webhooks;
  const actor = serviceActor("dispatcher");
  return {
    health: createSubscriptionHealth({ sql, log, actor, disableAfterMs, drained, now: nowMs }),
    rates: createRates({ sql, now: nowMs, onWait }),
    figures: createFigures({ sql, log, drained }),
  };
}

/**
 * Returns the parts by which the fan-out finds subscribers. They have an eligibility of their own:
 * after a fault, that of the sweep applies a rule again only after 10 s. An event that the fan-out
 * cannot judge waits for `webhooks.requeueAfter`.
 */
function findingOf(
  infrastructure: Infrastructure,
  configuration: Configuration,
): Pick<FanOutOptions, "eligibility" | "subscribers"> {
  const { sql, log } = infrastructure;
  const { config, definitions } = configuration;
  const { holdForMs } = config.webhooks;
  const eligibility = createEligibilityOf(infrastructure, definitions);
  const budget = createFairBudget({ ...stepsOfDispatcher, now: nowMs });
  const filters = createWebhookFilters({ definitions, log, budget });
  return {
    eligibility,
    subscribers: createSubscriberFinder({ sql, eligibility, filters, holdForMs, now: nowMs }),
  };
}

function createAdmissionOf(
  { dispatcherSql: sql, sharedSlots, log }: Infrastructure,
  { config: { webhooks } }: Configuration,
  { drained }: Callbacks,
): Admission {
  return createAdmission({
    sql,
    drained,
    concurrency: webhooks.concurrency,
    perReceiver: webhooks.receiverConcurrency,
    sharedSlots,
    hasBreakers: webhooks.breaker,
    timeoutMs: webhooks.timeoutMs,
    log,
    now: nowMs,
    random: Math.random,
  });
}

function prunersOf(
  { dispatcherSql: sql, transact, log }: Infrastructure,
  { config }: Configuration,
): readonly Worker[] {
  const keepForMs = config.retention.days * 24 * 3_600_000;
  const actor = serviceActor("dispatcher");
  return [
    createRetention({ transact, keepForMs, log }),
    createTokensPruner({ sql, log, actor, keepForMs }),
    createChangesPruner({ sql, log }),
  ];
}
