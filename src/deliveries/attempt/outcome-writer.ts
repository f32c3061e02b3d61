import { setTimeout as sleep } from "node:timers/promises";
import { createBatcher, type Batcher } from "../../kit/batcher.ts";
import { messageOf } from "../../kit/errors.ts";
import { databaseFaultOf, isLockWaitOver } from "../../db/database-fault.ts";
import type { Log } from "../../telemetry/log.ts";
import { countWritten, flightsEndedBy, type Flight } from "../flights.ts";
import type { DeliveryStatus } from "../delivery.ts";
import type { Announce } from "../messages.ts";
import type { DeliveryStore } from "../store.ts";
import type { Outcome, RequeuedDelivery } from "../outcome.ts";

export interface OutcomeWriterOptions {
  readonly store: Pick<DeliveryStore, "record" | "findUnlocked" | "putBack">;
  readonly log: Log;
  /**
   * Called for each delivery that went into the queue, with its wait in ms; undefined when it waits
   * for a slot.
   */
  readonly onQueued: (delayMs: number | undefined) => void;
  readonly announce: Announce;
}

/**
 * Writes the outcomes of deliveries in flight in batches, and ends their flights. While the
 * database is away, it repeats a write for as long as the flight lasts. Otherwise every POST in
 * flight would be made twice.
 */
export interface OutcomeWriter {
  /**
   * Writes an outcome. Returns the resulting status; undefined when another process has written an
   * outcome.
   */
  record(flight: Flight, outcome: Outcome): Promise<DeliveryStatus | undefined>;
  /** Puts a delivery back into the queue, without waiting for it. */
  putBack(flight: Flight, back: RequeuedDelivery): void;
  /**
   * Keeps the process running until `work` is done. A failure is only logged, because the delivery
   * is due again when its flight ends.
   */
  keep(id: string, work: Promise<unknown>): void;
  /** Resolves when no write and no kept work is pending. */
  drain(): Promise<void>;
  /** Stops repeating writes while the database is away. */
  stop(): void;
}

interface Write<T> {
  readonly flight: Flight;
  readonly item: T;
}

interface State extends OutcomeWriterOptions {
  readonly pending: Set<Promise<void>>;
  isStopping: boolean;
}

const mostAtOnce = 200;
/**
 * At 100 deliveries a second, one statement for the outcomes of 50 ms saves a tenth of PostgreSQL's
 * CPU. When a process is killed, the attempts of the last 50 ms are made again.
 */
const recordEveryMs = 50;
// How long a write is repeated: less than the 15 s that a flight has after the POST; see
// `flightMsOf`.
const recordForMs = 14_000;
const recordRetryMs = 500;

export function createOutcomeWriter(options: OutcomeWriterOptions): OutcomeWriter {
  const state: State = { ...options, pending: new Set(), isStopping: false };
  const records: Batcher<Write<Outcome>, Recorded> = createBatcher({
    maxItems: mostAtOnce,
    handle: (writes) => recordAll(state, writes),
    everyMs: recordEveryMs,
  });
  const returns: Batcher<Write<RequeuedDelivery>, void> = createBatcher({
    maxItems: mostAtOnce,
    handle: (writes) => putBackAll(state, writes),
  });
  return {
    record: (flight, item) => persist(state, item.id, () => records.add({ flight, item })),
    putBack: (flight, item) =>
      keep(
        state,
        item.id,
        persist(state, item.id, () => returns.add({ flight, item })),
      ),
    keep: (id, work) => keep(state, id, work),
    async drain() {
      while (state.pending.size > 0) await Promise.all(state.pending);
    },
    stop() {
      state.isStopping = true;
    },
  };
}

type Recorded = DeliveryStatus | undefined;

/**
 * Writes outcomes. When another transaction locks a delivery for long, only that delivery's outcome
 * waits.
 */
async function recordAll(
  state: State,
  writes: readonly Write<Outcome>[],
): Promise<readonly (Recorded | Promise<Recorded>)[]> {
  try {
    return await recordUnlocked(state, writes);
  } catch (error) {
    if (!isLockWaitOver(error)) throw error;
    const unlocked = await state.store.findUnlocked(writes.map(({ item }) => item.id));
    const others = writes.filter(({ item }) => unlocked.has(item.id));
    if (others.length === 0) throw error;
    const statuses = await recordUnlocked(state, others);
    const byId = new Map(others.map(({ item }, index) => [item.id, statuses[index]]));
    return writes.map(({ item: { id } }) => (byId.has(id) ? byId.get(id) : Promise.reject(error)));
  }
}

async function recordUnlocked(state: State, writes: readonly Write<Outcome>[]): Promise<readonly Recorded[]> {
  const flights = writes.map(({ flight }) => flight);
  const outcomes = writes.map(({ item }) => item);
  const endedFlights = flightsEndedBy(flights);
  const isWhole = !flights.some(({ isPartlyWritten }) => isPartlyWritten);
  const written = await state.store.record({ outcomes, endedFlights, isWhole });
  endOthers(state, flights, endedFlights);
  return outcomes.map(({ id }) => written.get(id));
}

async function putBackAll(
  state: State,
  writes: readonly Write<RequeuedDelivery>[],
): Promise<readonly undefined[]> {
  const flights = writes.map(({ flight }) => flight);
  const endedFlights = flightsEndedBy(flights);
  const returns = writes.map(({ flight, item }) => ({ ...item, flightId: flight.id }));
  await state.store.putBack({ returns, endedFlights });
  endOthers(state, flights, endedFlights);
  for (const { item } of writes) state.onQueued(item.delayMs);
  const forOthers = writes.flatMap(({ item: { id, uuidForOthers: uuid } }) =>
    uuid === undefined ? [] : [{ id, uuid }],
  );
  state.announce(forOthers, "retry");
  return writes.map(() => undefined);
}

function endOthers(state: State, flights: readonly Flight[], endedFlights: readonly string[]): void {
  const others = countWritten(flights, endedFlights);
  if (others.length > 0)
    keep(
      state,
      `of the flights ${others.join()}`,
      state.store.putBack({ returns: [], endedFlights: others }),
    );
}

/** Repeats a write while the database is away, as long as the flight lasts. */
async function persist<T>(state: State, id: string, write: () => Promise<T>): Promise<T> {
  const giveUpAt = performance.now() + recordForMs;
  for (;;) {
    try {
      return await write();
    } catch (error) {
      const isAway = databaseFaultOf(error).kind === "unavailable";
      if (!isAway || state.isStopping || performance.now() > giveUpAt) throw error;
      state.log.warn({ reason: messageOf(error), delivery: id }, "outcome not written; trying again");
      await sleep(recordRetryMs);
    }
  }
}

function keep({ pending, log }: State, id: string, work: Promise<unknown>): void {
  const done = work
    .then(
      () => undefined,
      (error: unknown) =>
        log.error({ err: error, delivery: id }, "delivery not handled; it is due again soon"),
    )
    .finally(() => pending.delete(done));
  pending.add(done);
}
