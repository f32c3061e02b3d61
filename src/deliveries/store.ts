import { randomUUID } from "node:crypto";
import { arraysOf, getRow, type Sql } from "../db/sql.ts";
import { isLost } from "../db/statement-batch.ts";
import type { EventKind } from "../events/event.ts";
import type { Payload } from "../events/present-stored.ts";
import type { PayloadBytes } from "./attempt/delivery-in-flight.ts";
import type { DeliveryStatus } from "./delivery.ts";
import { insertDeliveries, type Inserted, type Insertion } from "./insert-deliveries.ts";
import type { RequeuedDelivery } from "./outcome.ts";
import { recordOutcomes, type Recording } from "./record-outcomes.ts";
import {
  cancelText,
  dataText,
  endFlightsText,
  findOrphanedText,
  findParkedText,
  findUndeadLetteredText,
  markDeadLetteredText,
  nextDueText,
  putBackText,
  renewFlightText,
  returnFarText,
  returnStraysText,
  takeDueText,
  takeParkedText,
  unlockedText,
} from "./store-texts.ts";
import { toTaken, type TakenDeliveries, type TakenDelivery, type TakenRow } from "./taken.ts";

/** A subscription with deliveries that wait for a slot, or are held. */
export type WaitingSubscription = {
  readonly subscriptionId: number;
  /** Attempts a second; null for no limit. */
  readonly rateLimit: number | null;
} & (
  | {
      readonly url: string;
      readonly userId: number;
      /** False also when the subscription's user is disabled. */
      readonly isActive: boolean;
    }
  /** The subscription was deleted. */
  | { readonly url: null; readonly userId: null; readonly isActive: false }
);

/** Number of a subscription's deliveries to take from each end of its queue. */
interface Wanted {
  readonly subscriptionId: number;
  readonly oldest: number;
  readonly newest: number;
}

/** A failed delivery with the content of its dead letter. */
export interface DeadDelivery {
  readonly id: string;
  readonly uuid: string;
  readonly eventUuid: string;
  readonly event: EventKind;
  readonly resource: string;
  readonly timestamp: string;
  readonly lastError: string | null;
  /** JSON of the record; null when it was erased. */
  readonly data: string | null;
  /** JSON of the record before an update; null when the body does not show it. */
  readonly previous: string | null;
}

/**
 * The dispatcher's statements on deliveries, their queue and the flights. Each function runs one
 * bounded statement.
 */
export interface DeliveryStore {
  /** Writes the deliveries of events: see `insertDeliveries`. */
  insert(insertion: Insertion): Promise<Inserted>;
  /**
   * Takes due deliveries: half of them the longest due, half the latest. With `sinceMs`, only those
   * that became due less than that time ago. Leaves out the deliveries whose ids are in `except`.
   */
  takeDue(options: {
    readonly limit: number;
    readonly flightMs: number;
    readonly sinceMs: number | undefined;
    readonly except?: Iterable<string>;
  }): Promise<TakenDeliveries>;
  /** Takes deliveries that wait for a slot. */
  takeParked(options: {
    readonly wanted: readonly Wanted[];
    readonly flightMs: number;
  }): Promise<TakenDeliveries>;
  /** Returns subscriptions with deliveries that wait for a slot, by id. */
  findParked(options: {
    readonly after: number;
    readonly limit: number;
  }): Promise<readonly WaitingSubscription[]>;
  /** Returns the payloads of the events of deliveries, by the UUID of the event. */
  dataOf(
    deliveries: readonly Pick<TakenDelivery, "eventId" | "eventUuid">[],
  ): Promise<ReadonlyMap<string, PayloadBytes>>;
  /**
   * Writes outcomes and their attempts, and ends flights. Returns the status of each delivery that
   * was written: a delivery that was cancelled during its POST stays cancelled. Other deliveries of
   * an ended flight become due, because a crash of the database has lost their earlier writes.
   */
  record(recording: Recording): Promise<ReadonlyMap<string, DeliveryStatus>>;
  /** Returns the ids of the deliveries that no other transaction has locked. */
  findUnlocked(ids: readonly string[]): Promise<ReadonlySet<string>>;
  /**
   * Makes a flight last for `flightMs` from now on. Returns false when it has ended: its deliveries
   * may be in other flights.
   */
  renewFlight(options: { readonly id: string; readonly flightMs: number }): Promise<boolean>;
  /**
   * Puts deliveries back into the queue that their flights still have, and ends flights like
   * `record`.
   */
  putBack(options: {
    readonly returns: readonly (RequeuedDelivery & { readonly flightId: string })[];
    readonly endedFlights: readonly string[];
  }): Promise<void>;
  /**
   * Makes the deliveries of overdue flights due, because the process that took them has died. So
   * are those that this process may have taken, by statements that were not answered. Returns their
   * number.
   */
  endOverdueFlights(options: { readonly limit: number; readonly flightMs: number }): Promise<number>;
  /**
   * Makes the deliveries of all flights due, on an embedded database, which no other process uses.
   */
  endAllFlights(): Promise<void>;
  /**
   * Makes unfinished deliveries due that are older than `olderThanMs` and in neither the queue nor
   * a flight: a safety net. Reads one page of ids. Returns the last id of the page; undefined at
   * the end.
   */
  returnStrays(options: {
    readonly after: string | undefined;
    readonly limit: number;
    readonly olderThanMs: number;
  }): Promise<{ readonly last: string | undefined; readonly count: number }>;
  /**
   * Makes deliveries due that wait longer than any schedule, because the database's clock was set
   * back. Retries by the longer schedule of another dispatcher wait for `longestWaitMs` instead.
   * Returns their number.
   */
  returnFar(options: { readonly longestWaitMs: number; readonly limit: number }): Promise<number>;
  /** Returns the time in ms until the next delivery is due; undefined when none is scheduled. */
  nextDueInMs(): Promise<number | undefined>;
  /** Cancels deliveries of a deleted subscription. Returns their number. */
  cancelOrphans(options: { readonly subscriptionId: number; readonly limit: number }): Promise<number>;
  /**
   * Looks through a page of the subscriptions that have deliveries in the queue. Returns the ids of
   * the deleted ones, and the last id of the page; undefined at the end.
   */
  findOrphaned(options: {
    readonly after: number;
    readonly limit: number;
  }): Promise<{ readonly ids: readonly number[]; readonly last: number | undefined }>;
  /** Returns failed deliveries whose dead letter was not confirmed for `olderThanMs`, by id. */
  findUndeadLettered(options: {
    readonly after: string;
    readonly limit: number;
    readonly olderThanMs: number;
  }): Promise<readonly DeadDelivery[]>;
  markDeadLettered(ids: readonly string[]): Promise<void>;
}

/** Statements that take deliveries into flights, and those that end the flights of others. */
type Taking = Pick<
  DeliveryStore,
  "insert" | "takeDue" | "takeParked" | "endOverdueFlights" | "endAllFlights"
>;

function createTaking(sql: Sql): Taking {
  /** Ids of flights that a commit without an answer may have begun. */
  const unanswered = new Set<string>();
  const inFlight = async <T>(take: (flightId: string) => Promise<T>): Promise<T> => {
    const flightId = randomUUID();
    try {
      return await take(flightId);
    } catch (error) {
      if (isLost(error)) unanswered.add(flightId);
      throw error;
    }
  };
  const take = async (text: string, values: readonly unknown[]): Promise<TakenDeliveries> => {
    const beganAtMs = performance.now();
    const rows = await inFlight((flightId) => sql<TakenRow>(text, [...values, flightId]));
    return toTaken(rows, beganAtMs);
  };
  return {
    insert: (insertion) => inFlight((flightId) => insertDeliveries(sql, insertion, flightId)),
    async takeDue({ limit, flightMs, sinceMs, except = [] }) {
      const values = [limit, flightMs, sinceMs ?? null, [...except]];
      return take(takeDueText, values);
    },
    async takeParked({ wanted, flightMs }) {
      return take(takeParkedText, [...arraysOf(wanted, "subscriptionId", "oldest", "newest"), flightMs]);
    },
    async endOverdueFlights({ limit, flightMs }) {
      const ids = [...unanswered].slice(0, limit);
      const { count } = await getRow<{ count: number }>(sql, endFlightsText, [limit, 0, flightMs, ids]);
      for (const id of ids) unanswered.delete(id);
      return count;
    },
    async endAllFlights() {
      await sql(endFlightsText, [2 ** 31 - 1, 10 * 365 * 24 * 3600 * 1000, 0, []]);
    },
  };
}

export function createDeliveryStore({ sql }: { readonly sql: Sql }): DeliveryStore {
  return {
    ...createTaking(sql),
    async findParked({ after, limit }) {
      return sql<WaitingSubscription>(findParkedText, [after, limit]);
    },
    async dataOf(deliveries) {
      const events = new Map(deliveries.map(({ eventId, eventUuid }) => [eventUuid, eventId]));
      const rows = await sql<{ uuid: string } & Payload>(dataText, [
        [...events.values()],
        [...events.keys()],
      ]);
      return new Map(
        rows.map(({ uuid, data, previous }) => [
          uuid,
          { data: Buffer.from(data), previous: previous === null ? undefined : Buffer.from(previous) },
        ]),
      );
    },
    record: (recording) => recordOutcomes(sql, recording),
    async findUnlocked(ids) {
      const rows = await sql<{ id: string }>(unlockedText, [ids]);
      return new Set(rows.map(({ id }) => id));
    },
    async renewFlight({ id, flightMs }) {
      return (await sql(renewFlightText, [id, flightMs])).length > 0;
    },
    async putBack({ returns, endedFlights }) {
      await sql(putBackText, [
        ...arraysOf(returns, "id", "delayMs", "flightId"),
        endedFlights,
        ...arraysOf(returns, "isHurried"),
      ]);
    },
    async returnStrays({ after, limit, olderThanMs }) {
      const values = [after ?? null, limit, olderThanMs];
      const { last, count } = await getRow<{ last: string | null; count: number }>(
        sql,
        returnStraysText,
        values,
      );
      return { last: last ?? undefined, count };
    },
    async returnFar({ longestWaitMs, limit }) {
      return (await getRow<{ count: number }>(sql, returnFarText, [longestWaitMs, limit])).count;
    },
    async nextDueInMs() {
      const [next] = await sql<{ ms: number }>(nextDueText);
      return next?.ms;
    },
    async cancelOrphans({ subscriptionId, limit }) {
      return (await getRow<{ count: number }>(sql, cancelText, [subscriptionId, limit])).count;
    },
    async findOrphaned({ after, limit }) {
      const rows = await sql<{ id: number; isOrphaned: boolean }>(findOrphanedText, [after, limit]);
      return {
        ids: rows.flatMap(({ id, isOrphaned }) => (isOrphaned ? [id] : [])),
        last: rows.length === limit ? rows.at(-1)?.id : undefined,
      };
    },
    findUndeadLettered: ({ after, limit, olderThanMs }) =>
      sql<DeadDelivery>(findUndeadLetteredText, [limit, olderThanMs, after]),
    async markDeadLettered(ids) {
      if (ids.length > 0) await sql(markDeadLetteredText, [ids]);
    },
  };
}
