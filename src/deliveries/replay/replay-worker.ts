import { randomUUID } from "node:crypto";
import { maxMessageBytes } from "../../broker/message-limit.ts";
import { databaseFaultOf } from "../../db/database-fault.ts";
import { readFitting } from "../../db/read-fitting.ts";
import type { Sql } from "../../db/sql.ts";
import type { Captured, PresentedAll } from "../../events/event-presenter.ts";
import { presentStored, type Payload, type StoredEvent } from "../../events/present-stored.ts";
import { createAlarm, pause, type Worker } from "../../kit/worker.ts";
import { createPageSizes, type PageSizes } from "../../querying/page-sizes.ts";
import type { Eligibility } from "../../subscriptions/eligibility.ts";
import type { FilteredEvent } from "../../subscriptions/filter-answers.ts";
import type { WebhookFilters } from "../../subscriptions/filters.ts";
import type { Log } from "../../telemetry/log.ts";
import type { ScheduleOf } from "../attempt/schedule.ts";
import {
  findReplayed,
  findReplayedSubscription,
  judgeInOrder,
  type ReplayedEvent,
  type ReplayedSubscription,
} from "./find-replayed.ts";
import type { NewReplayed, ReplayStore } from "./replay-store.ts";
import { ReplayDelay, type Replay } from "./replay.ts";

export interface ReplayWorkerOptions {
  readonly sql: Sql;
  /** Reads records, over connections with a size limit for results. */
  readonly dataSql: Sql;
  readonly store: ReplayStore;
  readonly eligibility: Pick<Eligibility, "judge">;
  readonly filters: Pick<WebhookFilters, "passing">;
  readonly scheduleOf: ScheduleOf;
  /** Presents the records of events without a delivery; see `createEventPresenter`. */
  readonly present: (resource: string, events: readonly Captured[]) => Promise<PresentedAll>;
  readonly intervalMs: number;
  readonly log: Log;
}

/** A worker that can be woken for a new replay. */
export interface ReplayWorker extends Worker {
  wake(): void;
}

/**
 * Length of a lease, longer than a portion takes. After it, another process may take the replay of
 * a dead process.
 */
const leaseMs = 5_000;
/** Most events that one portion scans, and most deliveries that it makes. */
const portion = { look: 1_000, take: 100 };
/** Most bytes of both rows of an update: a message has the ids of its record beside them. */
const mostOfRows = maxMessageBytes - 64 * 1024;

interface Context extends ReplayWorkerOptions {
  /** Number of records that fit into a portion, by user. */
  readonly sizes: PageSizes;
}

/**
 * Creates the worker that makes the deliveries of replays, one portion after the other. It rests
 * after each for as long as the portion took. Each commit writes deliveries and the cursor, so that
 * none is lost or made twice when a process dies. Dispatchers send these deliveries like held ones,
 * beside new ones.
 */
export function createReplayWorker(given: ReplayWorkerOptions): ReplayWorker {
  const options = { ...given, sizes: createPageSizes() };
  const { store, intervalMs, log } = options;
  const holder = randomUUID();
  const alarm = createAlarm();
  return {
    name: "replays",
    wake: () => alarm.wake(),
    async run(signal) {
      while (!signal.aborted) {
        const startedAt = performance.now();
        try {
          const replay = await store.claim({ holder, leaseMs });
          if (replay === undefined) await alarm.wait(intervalMs, signal);
          else {
            await advanceOrRest(options, replay);
            await pause(performance.now() - startedAt, signal);
          }
        } catch (error) {
          log.error({ err: error }, "replays not gone on with; trying again");
          await pause(intervalMs, signal);
        }
      }
      // If this fails, another process takes the replays when the lease is over.
      await store.leave(holder).catch(() => undefined);
    },
  };
}

/**
 * Makes the deliveries of the next portion. A replay that cannot go on rests, and others go on
 * meanwhile.
 */
async function advanceOrRest(options: Context, replay: Replay): Promise<void> {
  const { store, intervalMs, log } = options;
  try {
    await advance(options, replay);
  } catch (error) {
    log.error({ err: error, replayId: replay.id }, "a replay not gone on with; trying again");
    const reason = error instanceof ReplayDelay ? error.message : null;
    await store.rest(replay, { ms: intervalMs, reason });
  }
}

/**
 * Makes the deliveries of the next portion. It ends before an event that cannot be judged now.
 */
async function advance(options: Context, replay: Replay): Promise<void> {
  const { sql, store, eligibility, sizes, log } = options;
  const subscription = await findReplayedSubscription(sql, replay.subscriptionId);
  if (subscription?.isActive !== true) {
    const what = subscription === undefined ? "deleted" : "switched off";
    await store.stop(replay, `The subscription was ${what}.`);
    return;
  }
  const { asked, cursor: after, untilId } = replay;
  const found = await findReplayed(sql, { asked, subscription, after, untilId, ...portion });
  const verdicts = await judgeInOrder(eligibility, subscription, found.events);
  const readable = found.events.filter((_, index) => verdicts[index] === true);
  const likely = readable.slice(0, sizes.likely(replay.userId));
  const { records, size } = await readRecords(options, likely);
  if (size < readable.length) sizes.note(replay.userId, { asked: readable.length, size });
  const changed = new Set(records.flatMap(({ id, hasPrevious }) => (hasPrevious ? [id] : [])));
  const showing = likely.slice(0, size).filter(({ id }) => changed.has(id));
  const mayReadOld = await judgeInOrder(eligibility, subscription, showing, "previous");
  // The first event of the next portion: it is not judged, or does not fit.
  const next = showing[mayReadOld.length] ?? readable[size] ?? found.events[verdicts.length];
  const count = next === undefined ? found.events.length : found.events.indexOf(next);
  if (next !== undefined && count === 0)
    throw new ReplayDelay(`Who may read an event of ${next.resource} cannot be decided now.`);
  const cursor = next === undefined ? found.last : (found.events[count - 1]?.id ?? after);
  const isEnd = found.isEnd && next === undefined;
  const handled = found.events.slice(0, count).filter((_, index) => verdicts[index] === true);
  const old = new Set(showing.flatMap(({ id }, index) => (mayReadOld[index] === true ? [id] : [])));
  const { events, unmade } = await withRecords(options, subscription, { events: handled, records, old });
  await store.advance(replay, { events, unmade, cursor, isEnd });
  log.info(
    {
      event: "replay.portion",
      replayId: replay.id,
      subscriptionId: subscription.id,
      deliveries: events.length,
      unmade,
      isEnd,
    },
    "portion of a replay",
  );
}

// An event with deliveries already has its data. Without data or a snapshot, the record was erased.
const dataText = `
  SELECT event.id, event.resource, data.data, CASE WHEN data.data IS NULL THEN event.snapshot END AS snapshot,
    CASE WHEN data.data IS NULL AND $2::bool THEN event.previous END AS previous, data.previous IS NOT NULL AS "hasPrevious",
    jsonb_typeof(event.snapshot) = 'null'
      OR data.data IS NULL AND EXISTS (SELECT FROM svc.deliveries WHERE event_id = event.id) AS "isErased"
  FROM svc.events AS event LEFT JOIN svc.event_data AS data ON data.event_id = event.id
  WHERE event.id = ANY($1::bigint[])`;

interface DataRow extends StoredEvent {
  readonly data: string | null;
  readonly hasPrevious: boolean;
  readonly isErased: boolean;
}

interface ReplayedRecord extends Pick<DataRow, "id" | "data"> {
  /** Whether the delivery shows the old row, which its reader must have the right to read. */
  readonly hasPrevious: boolean;
  /** Undefined when the event already has its data, or no data can be made. */
  readonly presented: Payload | undefined;
}

/**
 * Reads the records of the first events, as many as fit into the limits of a connection and a
 * portion. Reads an event without its old row when both rows do not fit.
 */
async function readRecords(
  options: ReplayWorkerOptions,
  events: readonly ReplayedEvent[],
): Promise<{ readonly records: readonly ReplayedRecord[]; readonly size: number }> {
  try {
    return await readFitting(events.length, (most) => recordsOf(options, events.slice(0, most)));
  } catch (error) {
    if (databaseFaultOf(error).kind !== "too_large") throw error;
  }
  try {
    return { records: await recordsOf(options, events.slice(0, 1), { withOld: false }), size: 1 };
  } catch (error) {
    if (databaseFaultOf(error).kind !== "too_large") throw error;
    // Skips the event, because the replay could otherwise never continue past it.
    const [{ id: eventId, resource } = {}] = events;
    options.log.warn({ event: "replay.unmade", resource, eventId }, "the record of an event is too large");
    return { records: [], size: 1 };
  }
}

async function recordsOf(
  options: ReplayWorkerOptions,
  events: readonly ReplayedEvent[],
  { withOld } = { withOld: true },
): Promise<readonly ReplayedRecord[]> {
  if (events.length === 0) return [];
  const rows = await options.dataSql<DataRow>(dataText, [events.map(({ id }) => id), withOld]);
  const unmade = rows.filter(({ data, isErased }) => data === null && !isErased);
  const presented = await presentStored(options.present, unmade, {
    mayBeFewer: events.length > 1,
    away: (resource, cause) => new ReplayDelay(`The records of ${resource} cannot be read now.`, { cause }),
  });
  for (const { id: eventId, resource } of unmade)
    if (presented.get(eventId) === undefined)
      options.log.warn({ event: "replay.unmade", resource, eventId }, "the transform fails for an event");
  return rows.map(({ id, data, ...row }) => {
    const made = fitting(presented.get(id));
    return { id, data, hasPrevious: row.hasPrevious || typeof made?.previous === "string", presented: made };
  });
}

/** Leaves out the old row when both do not fit into a message, like the relay. */
function fitting(payload: Payload | undefined): Payload | undefined {
  if (payload === undefined || payload.previous === null) return payload;
  const { data, previous } = payload;
  const isFitting = Buffer.byteLength(data) + Buffer.byteLength(previous) <= mostOfRows;
  return isFitting ? payload : { data, previous: null };
}

/**
 * Adds the records to events, and leaves out events that do not pass the webhook's filter. Events
 * without a record count as unmade.
 */
async function withRecords(
  options: ReplayWorkerOptions,
  { filter, user }: ReplayedSubscription,
  {
    events,
    records,
    old,
  }: {
    readonly events: readonly ReplayedEvent[];
    readonly records: readonly ReplayedRecord[];
    /** Ids of the events whose old row the subscriber may read. */
    readonly old: ReadonlySet<string>;
  },
): Promise<{ readonly events: readonly NewReplayed[]; readonly unmade: number }> {
  if (events.length === 0) return { events: [], unmade: 0 };
  const byId = new Map(records.map((record) => [record.id, record]));
  const made = events.flatMap(({ id: eventId, resource, parentId }) => {
    const { data: stored = null, presented } = byId.get(eventId) ?? {};
    const text = stored ?? presented?.data;
    if (text === undefined) return [];
    const { maxAttempts } = options.scheduleOf(resource);
    const { data = null, previous = null } = presented ?? {};
    const event = { eventId, parentId, data, previous, mayReadOld: old.has(eventId), maxAttempts };
    return [{ filter, user, resource, text, event }];
  });
  const filtered = function* (): Iterable<FilteredEvent> {
    for (const { resource, text } of made) yield { resource, data: JSON.parse(text) };
  };
  const passed = await options.filters.passing(
    filtered(),
    made.map((one) => [one]),
  );
  return { events: passed.flat().map(({ event }) => event), unmade: events.length - made.length };
}
