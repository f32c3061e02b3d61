import type { Sql } from "../db/sql.ts";
import type { Trigger } from "../mapping/definition.ts";
import type { AttemptResult, DeliveryStatus } from "./delivery.ts";
import {
  cancelText,
  dataText,
  endFlightsText,
  findOrphanedText,
  findParkedText,
  findUndeadLetteredText,
  insertAllText,
  insertSomeText,
  markDeadLetteredText,
  nextDueText,
  putBackText,
  recordText,
  recordWholeText,
  returnStraysText,
  takeDueText,
  takeParkedText,
  type InsertedRow,
  type TakenRow,
} from "./store-texts.ts";

/** What the fan-out makes of one event and one matching subscription. */
export interface NewDelivery {
  readonly uuid: string;
  /** Row id of the event, as a decimal string. */
  readonly eventId: string;
  readonly eventUuid: string;
  readonly subscriptionId: number;
  readonly userId: number;
  readonly resource: string;
  readonly url: string;
  readonly maxAttempts: number;
  /** W3C `traceparent` that its attempts are a part of. */
  readonly traceparent?: string | undefined;
  /** Whether this process attempts it now; otherwise it waits in the queue for a slot. */
  readonly isTaken: boolean;
}

/** An event that is fanned out. */
export interface FannedOutEvent {
  readonly id: string;
  /** A part of the fence: a crash or fail-over of the database that takes back an event gives its id to another. */
  readonly uuid: string;
  /** JSON of its record; undefined when no delivery needs it. */
  readonly data: string | undefined;
}

/** A delivery that this process has taken out of the queue. */
export interface TakenDelivery {
  /** Row id, as a decimal string. */
  readonly id: string;
  readonly uuid: string;
  readonly eventId: string;
  readonly eventUuid: string;
  readonly event: Trigger;
  readonly resource: string;
  /** Of the event: UTC, ISO 8601 with microseconds and a trailing `Z`. */
  readonly timestamp: string;
  /** Attempts made so far. */
  readonly attempt: number;
  readonly maxAttempts: number;
  /** Whether somebody asked for it. */
  readonly isManual: boolean;
  /** Since it was made or attempted, whichever was last. */
  readonly waitedMs: number;
  readonly ownerId: string | null;
  /** Of the event, at this moment, by the database's clock. */
  readonly eventAgeMs: number;
  /** W3C `traceparent` of what made the delivery; null when it was not traced. */
  readonly traceparent: string | null;
  /** Of the record's JSON. */
  readonly bytes: number;
  readonly subscriptionId: number;
  /** As it is now, so that a corrected URL reaches the retries; null when it was deleted. */
  readonly subscription: {
    readonly url: string;
    readonly encryptedSecret: Buffer;
    /** False also when its user is disabled. */
    readonly isActive: boolean;
    readonly user: {
      readonly id: number;
      readonly name: string;
      readonly email: string;
      readonly isAdmin: boolean;
    };
  } | null;
}

/** What this process took at once; see svc.flights. */
export interface Taken {
  /** Undefined when nothing was taken. */
  readonly flightId: string | undefined;
  readonly deliveries: readonly TakenDelivery[];
  /** Rows that left the queue: more than the deliveries when some of these were finished. */
  readonly removed: number;
}

/** What an attempt, or the decision not to make one, does to a delivery. */
export interface Outcome {
  readonly id: string;
  /** A part of the fence: a crash of the database that takes back an insert gives its id to another delivery. */
  readonly uuid: string;
  readonly status: DeliveryStatus;
  /** Attempts made before. The fence: nothing is written when another process has made one since. */
  readonly attemptsBefore: number;
  /** Until the next attempt; undefined when there is none. */
  readonly delayMs?: number;
  readonly lastError?: string;
  /** Undefined when no POST was made. */
  readonly result?: AttemptResult;
}

/** A delivery that goes back to the queue, without an attempt. */
export interface Return {
  readonly id: string;
  /** Undefined: it waits for a slot, or for its subscription to be active. */
  readonly delayMs: number | undefined;
}

/** The fence: nothing is put back that the flight does not have any more. */
export interface ReturnFromFlight extends Return {
  readonly flightId: string;
}

/** A subscription of which deliveries wait for a slot. */
export interface ParkedSubscription {
  readonly subscriptionId: number;
  /** Null when it was deleted. */
  readonly url: string | null;
  readonly userId: number | null;
  readonly isActive: boolean;
}

/** How many deliveries of a subscription to take, from both ends of its line. */
export interface Wanted {
  readonly subscriptionId: number;
  readonly oldest: number;
  readonly newest: number;
}

export interface DeadDelivery {
  readonly id: string;
  readonly uuid: string;
  readonly eventId: string;
  readonly eventUuid: string;
  readonly event: Trigger;
  readonly resource: string;
  readonly timestamp: string;
  readonly lastError: string | null;
  /** JSON of the record. */
  readonly data: string;
}

/** What the dispatcher does to the deliveries, their queue and the flights; each function is one statement, and bounded. */
export interface DeliveryStore {
  /**
   * Writes the deliveries of events, and takes these out of the outbox in the same commit. What is not in the outbox, because it was fanned
   * out before, gets none. Answers the ids of those that were written, by UUID.
   *
   * @param isComplete False: more deliveries of the same events follow.
   */
  insert(options: {
    readonly events: readonly FannedOutEvent[];
    readonly deliveries: readonly NewDelivery[];
    readonly isComplete: boolean;
    readonly flightMs: number;
  }): Promise<{
    /** How many of the events were in the outbox. */
    readonly eventCount: number;
    readonly flightId: string | undefined;
    readonly ids: ReadonlyMap<string, string>;
    /** Time of day of the database, in ms since 1970: this machine's need not be the same. */
    readonly databaseTimeMs: number;
  }>;
  /** Takes deliveries whose time has come, the longest due first, and those after `sinceMs` before now only, when given. */
  takeDue(options: {
    readonly limit: number;
    readonly flightMs: number;
    readonly sinceMs: number | undefined;
  }): Promise<Taken>;
  /** Takes deliveries that wait for a slot. */
  takeParked(options: { readonly wanted: readonly Wanted[]; readonly flightMs: number }): Promise<Taken>;
  /** Subscriptions of which deliveries wait for a slot, by id. */
  findParked(options: {
    readonly after: number;
    readonly limit: number;
  }): Promise<readonly ParkedSubscription[]>;
  /** JSON of the records of events, by event id. */
  dataOf(eventIds: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /**
   * Writes outcomes and their attempts, and ends flights; answers the ids of what was written.
   * Makes due what an ended flight has left: a crash of PostgreSQL took back what was written of it.
   *
   * @param options.isWhole The outcomes are of all deliveries of these flights.
   */
  record(options: {
    readonly outcomes: readonly Outcome[];
    readonly landed: readonly string[];
    readonly isWhole?: boolean;
  }): Promise<ReadonlySet<string>>;
  /** Puts deliveries back into the queue, and ends flights in the same way. */
  putBack(options: {
    readonly returns: readonly ReturnFromFlight[];
    readonly landed: readonly string[];
  }): Promise<void>;
  /** Makes the deliveries due of flights whose time is up: the process that took them has died. */
  endOverdueFlights(limit: number): Promise<number>;
  /** The same for all flights at once, of an embedded database that nobody else can be at work on. */
  endAllFlights(): Promise<void>;
  /**
   * Makes the deliveries due that are unfinished, older than `olderThanMs`, and in neither the queue nor a flight: none should be. Looks at a
   * page of ids after one; answers the last of it, undefined at the end.
   */
  returnStrays(options: {
    readonly after: string | undefined;
    readonly limit: number;
    readonly olderThanMs: number;
  }): Promise<{ readonly last: string | undefined; readonly count: number }>;
  /** Until the next delivery falls due that is not due yet; undefined when none waits. */
  nextDueInMs(): Promise<number | undefined>;
  /** Cancels deliveries whose subscription is gone; answers how many. */
  cancelOrphans(options: { readonly subscriptionId: number; readonly limit: number }): Promise<number>;
  /** Subscriptions by id that are gone, and of which deliveries are in the queue. */
  findOrphaned(limit: number): Promise<readonly number[]>;
  /** Failed deliveries whose dead letter was not confirmed for `olderThanMs`. */
  findUndeadLettered(options: {
    readonly limit: number;
    readonly olderThanMs: number;
  }): Promise<readonly DeadDelivery[]>;
  markDeadLettered(ids: readonly string[]): Promise<void>;
}

export function createDeliveryStore({ sql }: { readonly sql: Sql }): DeliveryStore {
  return {
    async insert({ events, deliveries, isComplete, flightMs }) {
      const rows = await sql<InsertedRow>(isComplete ? insertAllText : insertSomeText, [
        events.map(({ id }) => id),
        events.map(({ data }) => data ?? null),
        deliveries.map(({ uuid }) => uuid),
        deliveries.map(({ eventId }) => eventId),
        deliveries.map(({ eventUuid }) => eventUuid),
        deliveries.map(({ subscriptionId }) => subscriptionId),
        deliveries.map(({ userId }) => userId),
        deliveries.map(({ resource }) => resource),
        deliveries.map(({ url }) => url),
        deliveries.map(({ maxAttempts }) => maxAttempts),
        deliveries.map(({ traceparent }) => traceparent ?? null),
        deliveries.map(({ isTaken }) => isTaken),
        flightMs,
        events.map(({ uuid }) => uuid),
      ]);
      return {
        eventCount: rows[0]?.events ?? 0,
        flightId: rows[0]?.flightId ?? undefined,
        databaseTimeMs: rows[0]?.databaseTimeMs ?? 0,
        ids: new Map(rows.flatMap(({ uuid, id }) => (uuid === null || id === null ? [] : [[uuid, id]]))),
      };
    },
    async takeDue({ limit, flightMs, sinceMs }) {
      return takenIn(await sql<TakenRow>(takeDueText, [limit, flightMs, sinceMs ?? null]));
    },
    async takeParked({ wanted, flightMs }) {
      const rows = await sql<TakenRow>(takeParkedText, [
        wanted.map(({ subscriptionId }) => subscriptionId),
        wanted.map(({ oldest }) => oldest),
        wanted.map(({ newest }) => newest),
        flightMs,
      ]);
      return takenIn(rows);
    },
    async findParked({ after, limit }) {
      return sql<ParkedSubscription & Record<string, unknown>>(findParkedText, [after, limit]);
    },
    async dataOf(eventIds) {
      const rows = await sql<{ id: string; data: string }>(dataText, [eventIds]);
      return new Map(rows.map(({ id, data }) => [id, data]));
    },
    async record({ outcomes: given, landed, isWhole = false }) {
      // In the order in which everybody else locks deliveries.
      const outcomes = given.toSorted((one, other) => Number(one.id) - Number(other.id));
      const written = await sql<{ id: string }>(isWhole ? recordWholeText : recordText, [
        outcomes.map(({ id }) => id),
        outcomes.map(({ status }) => status),
        outcomes.map(({ attemptsBefore }) => attemptsBefore),
        outcomes.map(({ delayMs }) => delayMs ?? null),
        outcomes.map(({ lastError }) => lastError ?? null),
        outcomes.map(({ result }) => result?.startedAt ?? null),
        outcomes.map(({ result }) => result?.durationMs ?? null),
        outcomes.map(({ result }) => result?.statusCode ?? null),
        outcomes.map(({ result }) => result?.error ?? null),
        outcomes.map(({ result }) =>
          result?.responseHeaders === undefined ? null : JSON.stringify(result.responseHeaders),
        ),
        outcomes.map(({ result }) => result?.responseBody ?? null),
        outcomes.map(({ result }) => result?.isResponseTruncated ?? false),
        outcomes.map(({ uuid }) => uuid),
        landed,
      ]);
      return new Set(written.map(({ id }) => id));
    },
    async putBack({ returns, landed }) {
      await sql(putBackText, [
        returns.map(({ id }) => id),
        returns.map(({ delayMs }) => delayMs ?? null),
        returns.map(({ flightId }) => flightId),
        landed,
      ]);
    },
    async endOverdueFlights(limit) {
      const [row] = await sql<{ count: number }>(endFlightsText, [limit, 0]);
      return row?.count ?? 0;
    },
    async endAllFlights() {
      await sql(endFlightsText, [2 ** 31 - 1, 10 * 365 * 24 * 3600 * 1000]);
    },
    async returnStrays({ after, limit, olderThanMs }) {
      const [row] = await sql<{ last: string | null; count: number }>(returnStraysText, [
        after ?? null,
        limit,
        olderThanMs,
      ]);
      return { last: row?.last ?? undefined, count: row?.count ?? 0 };
    },
    async nextDueInMs() {
      const [next] = await sql<{ ms: number }>(nextDueText);
      return next?.ms;
    },
    async cancelOrphans({ subscriptionId, limit }) {
      const [row] = await sql<{ count: number }>(cancelText, [subscriptionId, limit]);
      return row?.count ?? 0;
    },
    async findOrphaned(limit) {
      return (await sql<{ id: number }>(findOrphanedText, [limit])).map(({ id }) => id);
    },
    async findUndeadLettered({ limit, olderThanMs }) {
      return sql<DeadDelivery & Record<string, unknown>>(findUndeadLetteredText, [limit, olderThanMs]);
    },
    async markDeadLettered(ids) {
      if (ids.length > 0) await sql(markDeadLetteredText, [ids]);
    },
  };
}

function takenIn(rows: readonly TakenRow[]): Taken {
  const taken = rows.filter(({ flightId }) => flightId !== null);
  const deliveries = taken.map((row) => {
    const {
      flightId: _,
      removed: __,
      url,
      encryptedSecret,
      isActive,
      userId,
      name,
      email,
      isAdmin,
      ...delivery
    } = row;
    const user = { id: userId, name, email, isAdmin };
    return { ...delivery, subscription: url === null ? null : { url, encryptedSecret, isActive, user } };
  });
  return { flightId: taken[0]?.flightId ?? undefined, deliveries, removed: rows[0]?.removed ?? 0 };
}
