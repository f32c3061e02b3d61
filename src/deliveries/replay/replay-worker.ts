import { randomUUID } from "node:crypto";
import type { Sql } from "../../db/sql.ts";
import type { Captured, Presented, PresentedAll } from "../../events/event-presenter.ts";
import type { Caller } from "../../kit/caller.ts";
import { groupBy } from "../../kit/group-by.ts";
import { createAlarm, pause, type Worker } from "../../kit/worker.ts";
import type { Eligibility } from "../../subscriptions/eligibility.ts";
import type { FilteredEvent } from "../../subscriptions/filter-answers.ts";
import type { WebhookFilters } from "../../subscriptions/filters.ts";
import type { Log } from "../../telemetry/log.ts";
import type { ScheduleOf } from "../attempt/schedule.ts";
import {
  findReplayed,
  findReplayedSubscription,
  filterReadable,
  type ReplayedEvent,
  type ReplayedSubscription,
} from "./find-replayed.ts";
import type { NewReplayed, ReplayStore } from "./replay-store.ts";
import type { Replay } from "./replay.ts";

export interface ReplayWorkerOptions {
  readonly sql: Sql;
  readonly store: ReplayStore;
  readonly eligibility: Pick<Eligibility, "judge">;
  readonly filters: Pick<WebhookFilters, "passing">;
  readonly scheduleOf: ScheduleOf;
  /** Makes the records of events that had no delivery. */
  readonly present: (resource: string, events: readonly Captured[]) => Promise<PresentedAll>;
  readonly intervalMs: number;
  readonly log: Log;
}

/** A worker that can be woken for a new replay. */
export interface ReplayWorker extends Worker {
  wake(): void;
}

/** A portion takes less. After it, another process may take a replay whose process has died. */
const leaseMs = 5_000;
/** Events that one portion looks at, and deliveries that it makes. */
const portion = { look: 1_000, take: 100 };
/** Limit of the records of one portion; a single one may be larger. */
const portionBytes = 4 * 1024 ** 2;

/**
 * Makes the deliveries of replays, a portion of one after the other. It rests after each for as
 * long as the portion took. Each commit moves the cursor with its deliveries, so that none is lost
 * or made twice when a process dies. Dispatchers send them like held deliveries, beside new ones.
 */
export function createReplayWorker(options: ReplayWorkerOptions): ReplayWorker {
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
            await advance(options, replay);
            await pause(performance.now() - startedAt, signal);
          }
        } catch (error) {
          log.error({ err: error }, "replays not gone on with; trying again");
          await pause(intervalMs, signal);
        }
      }
      // Otherwise another process takes them when the time is up.
      await store.leave(holder).catch(() => undefined);
    },
  };
}

/** Makes the deliveries of the next portion. */
async function advance(options: ReplayWorkerOptions, replay: Replay): Promise<void> {
  const { sql, store, eligibility, log } = options;
  const subscription = await findReplayedSubscription(sql, replay.subscriptionId);
  if (subscription?.isActive !== true) {
    const what = subscription === undefined ? "deleted" : "switched off";
    await store.stop(replay, `The subscription was ${what}.`);
    return;
  }
  const { asked, cursor: after, untilId } = replay;
  const found = await findReplayed(sql, { asked, subscription, after, untilId, ...portion });
  const readable = await filterReadable(eligibility, subscription, found.events);
  const fitting = await fittingOf(sql, readable);
  const isCut = fitting.length < readable.length;
  const cursor = isCut ? (fitting.at(-1)?.id ?? after) : found.last;
  const isEnd = found.isEnd && !isCut;
  const { events, unmade } = await withData(options, subscription, fitting);
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

const sizesText = `
  SELECT event.id, CASE WHEN data.data IS NULL THEN pg_column_size(event.snapshot) + coalesce(pg_column_size(event.previous), 0)
    ELSE octet_length(data.data) END AS bytes
  FROM svc.events AS event LEFT JOIN svc.event_data AS data ON data.event_id = event.id
  WHERE event.id = ANY($1::bigint[])`;

/** Returns the first events whose records fit into the memory of a portion; one at least. */
async function fittingOf(sql: Sql, events: readonly ReplayedEvent[]): Promise<readonly ReplayedEvent[]> {
  if (events.length === 0) return [];
  const rows = await sql<{ id: string; bytes: number }>(sizesText, [events.map(({ id }) => id)]);
  const sizes = new Map(rows.map(({ id, bytes }) => [id, bytes]));
  let bytes = 0;
  const tooMuch = events.findIndex(({ id }, index) => {
    bytes += sizes.get(id) ?? 0;
    return index > 0 && bytes > portionBytes;
  });
  return tooMuch === -1 ? events : events.slice(0, tooMuch);
}

// The data of an event with deliveries is made already. Without it, or a snapshot, the record was
// erased.
const dataText = `
  SELECT event.id, event.resource, data.data, CASE WHEN data.data IS NULL THEN event.snapshot END AS snapshot,
    CASE WHEN data.data IS NULL THEN event.previous END AS previous, event.previous IS NOT NULL AS "hasPrevious",
    jsonb_typeof(event.snapshot) = 'null'
      OR data.data IS NULL AND EXISTS (SELECT FROM svc.deliveries WHERE event_id = event.id) AS "isErased"
  FROM svc.events AS event LEFT JOIN svc.event_data AS data ON data.event_id = event.id
  WHERE event.id = ANY($1::bigint[])`;

interface DataRow extends Record<string, unknown> {
  readonly id: string;
  readonly resource: string;
  readonly data: string | null;
  readonly snapshot: Readonly<Record<string, unknown>> | null;
  readonly previous: Readonly<Record<string, unknown>> | null;
  readonly hasPrevious: boolean;
  readonly isErased: boolean;
}

/**
 * Adds the records to events, and leaves out those that do not pass the webhook's filter. Those
 * without a record cannot be made.
 */
async function withData(
  options: ReplayWorkerOptions,
  { filter, user }: ReplayedSubscription,
  events: readonly ReplayedEvent[],
): Promise<{ readonly events: readonly NewReplayed[]; readonly unmade: number }> {
  if (events.length === 0) return { events: [], unmade: 0 };
  const rows = await options.sql<DataRow>(dataText, [events.map(({ id }) => id)]);
  const known = new Map(rows.flatMap(({ id, data }) => (data === null ? [] : [[id, data] as const])));
  const presented = await presentedOf(
    options,
    rows.filter(({ data, isErased }) => data === null && !isErased),
  );
  const oldReadable = await oldReadableOf(options, user, events, rows);
  const made = events.flatMap(({ id, resource, parentId }): readonly NewReplayed[] => {
    const texts = presented.get(id);
    if (!known.has(id) && texts === undefined) return [];
    const { maxAttempts } = options.scheduleOf(resource);
    const { data = null, previous = null } = texts ?? {};
    return [{ eventId: id, parentId, data, previous, mayReadOld: oldReadable.has(id), maxAttempts }];
  });
  const resources = new Map(events.map(({ id, resource }) => [id, resource]));
  const filtered = function* (): Iterable<FilteredEvent> {
    for (const { eventId } of made) {
      const text = known.get(eventId) ?? presented.get(eventId)?.data ?? "null";
      yield { resource: resources.get(eventId) ?? "", data: JSON.parse(text) };
    }
  };
  const asked = made.map((event) => [{ filter, user, event }]);
  const passed = await options.filters.passing(filtered(), asked);
  const passing = passed.flatMap((own) => own.map(({ event }) => event));
  return { events: passing, unmade: events.length - made.length };
}

/** Returns the ids of the events whose old row the subscriber may read. */
async function oldReadableOf(
  { eligibility }: ReplayWorkerOptions,
  user: Caller,
  events: readonly ReplayedEvent[],
  rows: readonly DataRow[],
): Promise<ReadonlySet<string>> {
  const changed = new Set(rows.flatMap(({ id, hasPrevious }) => (hasPrevious ? [id] : [])));
  const asked = events.filter(({ id }) => changed.has(id));
  const verdicts = await eligibility.judge(
    asked.map((event) => ({ event, user })),
    "previous",
  );
  return new Set(asked.flatMap(({ id }, index) => (verdicts[index] === true ? [id] : [])));
}

interface PresentedTexts {
  readonly data: string;
  readonly previous: string | null;
}

/** Returns the JSON of the records by the ids of events. */
async function presentedOf(
  { present, log }: ReplayWorkerOptions,
  rows: readonly DataRow[],
): Promise<ReadonlyMap<string, PresentedTexts>> {
  const records = new Map<string, PresentedTexts>();
  for (const [resource, own] of groupBy(rows, (row) => row.resource)) {
    const answer = await present(
      resource,
      own.map(({ snapshot, previous }) => ({ snapshot: snapshot ?? {}, previous })),
    );
    if (answer.kind === "none" && answer.isPassing)
      throw new Error(`The records of ${resource} cannot be read now: ${answer.reason}`);
    own.forEach(({ id }, index) => {
      const one = answer.kind === "each" ? answer.answers[index] : undefined;
      if (one?.kind === "presented") records.set(id, textsOf(one));
      else log.warn({ event: "replay.unmade", resource, eventId: id }, "the transform fails for an event");
    });
  }
  return records;
}

function textsOf({ data, previous }: Extract<Presented, { readonly kind: "presented" }>): PresentedTexts {
  return { data: JSON.stringify(data), previous: previous === undefined ? null : JSON.stringify(previous) };
}
