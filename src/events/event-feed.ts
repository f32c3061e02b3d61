import { databaseFaultOf } from "../db/database-fault.ts";
import { readFitting } from "../db/read-fitting.ts";
import { ResultTooLargeError } from "../db/result-limit.ts";
import type { Sql } from "../db/sql.ts";
import { AppError } from "../kit/errors.ts";
import type { Caller } from "../kit/caller.ts";
import type { Trigger } from "../mapping/definition.ts";
import { createPageSizes, type PageSizes } from "../querying/page-sizes.ts";
import type { Captured, PresentedAll } from "./event-presenter.ts";
import { mostTextBytes, presentStored, type StoredEvent } from "./present-stored.ts";

/** Filter of the events that a caller requests. */
export interface FeedQuery {
  /** Resources that the token may read. */
  readonly resources: readonly string[];
  /** Triggers to include; undefined for all. */
  readonly triggers?: readonly string[] | undefined;
  readonly recordId?: string | undefined;
}

/** An event, as people and programs read it. */
export interface FeedEvent {
  /** Row id, as a decimal string. */
  readonly id: string;
  /** JSON of the event. */
  readonly json: string;
}

export interface FeedPage {
  readonly events: readonly FeedEvent[];
  /** Page size: smaller than requested when the events would be too large for one answer. */
  readonly size: number;
  /**
   * Id after which the next page continues: the id of the last event that was read, shown or not.
   */
  readonly next: bigint;
  /** Whether more events may exist already. */
  readonly hasMore: boolean;
}

/** Reads the events that a caller may read (docs/webhooks.md, "Events"). */
export interface EventFeed {
  /**
   * Reads the events after an id that the caller may read, oldest first. Scans at most 5,000
   * events, because the caller may be able to read only few of them.
   */
  read(options: ReadOptions & { readonly after: bigint }): Promise<FeedPage>;
  /**
   * Reads events before an id in the same way, newest first. Starts at the newest event without an
   * id.
   */
  readBack(options: ReadOptions & { readonly before: bigint | undefined }): Promise<FeedPage>;
  /** Returns an event; undefined when it does not exist, or the caller may not read it. */
  find(uuid: string, caller: Caller, resources: readonly string[]): Promise<FeedEvent | undefined>;
}

export interface ReadOptions {
  readonly query: FeedQuery;
  readonly caller: Caller;
  readonly take: number;
}

interface EventRow {
  readonly id: string;
  readonly uuid: string;
  readonly resource: string;
  readonly trigger: Trigger;
  readonly recordId: string;
  readonly ownerId: string | null;
  readonly occurredAt: string;
  readonly hasPrevious: boolean;
}

export interface EventFeedOptions {
  readonly sql: Sql;
  /** Reads by index (`createIndexSql`). */
  readonly listSql: Sql;
  /** See `EventHorizon`. */
  readonly horizon: () => Promise<bigint>;
  /** Decides who may read an event, by the same rules as for webhooks. */
  readonly judge: (
    pairs: readonly {
      readonly event: { readonly id: string; readonly resource: string; readonly owner_id: string | null };
      readonly user: Caller;
    }[],
    which?: "previous",
  ) => Promise<readonly (boolean | undefined)[]>;
  readonly present: (resource: string, events: readonly Captured[]) => Promise<PresentedAll>;
}

type Order = "ASC" | "DESC";

const portion = 1_000;
const mostPortions = 5;

const columns = `id, uuid, resource, trigger, record_id AS "recordId", owner_id AS "ownerId",
  to_char(occurred_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS "occurredAt",
  previous IS NOT NULL AS "hasPrevious"`;

// Bounded by the number of scanned events instead of found ones: few of many may belong to these
// resources, or have these triggers.
const scanText = (order: Order, events: string): string => `
  WITH scan AS MATERIALIZED (
    ${events} ORDER BY id ${order} LIMIT ${portion}
  ), bounds AS (
    SELECT ${order === "ASC" ? "max" : "min"}(id) AS last, count(*)::int AS looked FROM scan
  )
  SELECT ${columns}, last, looked
  FROM scan, bounds WHERE resource = ANY($3::text[]) AND ($4::text[] IS NULL OR trigger = ANY($4))
  UNION ALL
  SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, last, looked FROM bounds
  ORDER BY id ${order} NULLS LAST`;

// With two bounds of one column, the planner expects a narrow range. Without statistics, it then
// sorts all events. It does not count the bound of a row comparison, but the index scan still ends
// there.
const allText = "SELECT * FROM svc.events WHERE id > $1 AND (id, id) <= ($2::bigint, $2::bigint)";

/**
 * Selects the events of a record, by the one index with this order. With equalities, PostgreSQL
 * reads by the key, which takes 332 ms for a record that has the newest million events.
 */
const recordText = (order: Order): string => `
    SELECT event.* FROM unnest($3::text[]) AS asked (name) CROSS JOIN LATERAL (
      SELECT * FROM svc.events
      WHERE resource = ANY(ARRAY[asked.name]) AND (record_id, id) > ($5, $1::bigint) AND (record_id, id) <= ($5, $2::bigint)
      ORDER BY resource ${order}, record_id ${order}, id ${order} LIMIT ${portion}
    ) AS event`;

const findText = `SELECT ${columns} FROM svc.events WHERE id = $1 AND uuid = $2::uuid`;

const dataText = `
  SELECT event.id, event.resource, data.data || CASE WHEN event.id = ANY($2::bigint[]) THEN coalesce(',"previous":' || data.previous, '') ELSE '' END AS data,
    CASE WHEN data.data IS NULL THEN event.snapshot END AS snapshot, CASE WHEN data.data IS NULL AND event.id = ANY($2::bigint[]) THEN event.previous END AS previous
  FROM svc.events AS event LEFT JOIN svc.event_data AS data ON data.event_id = event.id
  WHERE event.id = ANY($1::bigint[])`;

interface DataRow extends StoredEvent {
  /** JSON after `"data":`: the record, and the keys after it. */
  readonly data: string | null;
}

interface Context extends EventFeedOptions {
  readonly pageSizes: PageSizes;
}

export function createEventFeed(given: EventFeedOptions): EventFeed {
  const options = { ...given, pageSizes: createPageSizes() };
  return {
    read: async ({ after, ...asked }) =>
      readPage(options, { ...asked, order: "ASC", above: after, until: await options.horizon() }),
    async readBack({ before, ...asked }) {
      const horizon = await options.horizon();
      const until = before === undefined || before > horizon ? horizon : before - 1n;
      return readPage(options, { ...asked, order: "DESC", above: 0n, until, isNewest: before === undefined });
    },
    async find(uuid, caller, resources) {
      const [row] = await options.sql<EventRow>(findText, [String(idOfUuid(uuid)), uuid]);
      if (row === undefined || !resources.includes(row.resource)) return undefined;
      const [isReadable] = await judgeFirst(options, [row], caller);
      return isReadable === true ? (await presentFitting(options, [row], caller))[0] : undefined;
    },
  };
}

/** Returns the id that the UUID of an event begins with (migration 0016). */
export function idOfUuid(uuid: string): bigint {
  return BigInt(`0x${uuid.replaceAll("-", "").slice(0, 12)}`);
}

/** The events with an id above `above` and up to `until`. */
interface Span {
  readonly order: Order;
  readonly above: bigint;
  readonly until: bigint;
}

async function readPage(
  options: Context,
  { query, caller, take, isNewest = false, ...asked }: ReadOptions & Span & { readonly isNewest?: boolean },
): Promise<FeedPage> {
  const readable: EventRow[] = [];
  let span: Span = asked;
  let hasMore = span.above < span.until;
  let next = span.order === "ASC" ? span.above : span.until + 1n;
  for (let portions = 0; hasMore && portions < mostPortions && readable.length < take; portions += 1) {
    const looked = await lookAt(options, query, span);
    const answers = await judgeFirst(options, looked.rows, caller);
    readable.push(...looked.rows.filter((_, index) => answers[index]));
    ({ next, hasMore } = looked);
    const lastJudged = looked.rows[answers.length - 1];
    if (lastJudged !== undefined && answers.length < looked.rows.length) {
      [next, hasMore] = [BigInt(lastJudged.id), true];
      break;
    }
    span = span.order === "ASC" ? { ...span, above: next } : { ...span, until: next - 1n };
  }
  // The newest page is requested repeatedly, so its size is remembered. Other pages do not predict
  // the next one.
  const likely = isNewest ? options.pageSizes.likely(caller.id) : undefined;
  const page = readable.slice(0, Math.min(take, likely ?? take));
  const events = await presentFitting(options, page, caller);
  const isCut = events.length < readable.length;
  const size = isCut ? events.length : take;
  // A page that reaches the last event does not show how many would fit.
  if (isNewest && isCut) options.pageSizes.note(caller.id, { asked: take, size });
  const last = events.at(-1);
  return {
    events,
    size,
    next: isCut && last !== undefined ? BigInt(last.id) : next,
    hasMore: hasMore || isCut,
  };
}

interface Looked {
  readonly rows: readonly EventRow[];
  readonly next: bigint;
  readonly hasMore: boolean;
}

async function lookAt(
  { sql, listSql }: EventFeedOptions,
  { resources, triggers, recordId }: FeedQuery,
  { order, above, until }: Span,
): Promise<Looked> {
  const values = [String(above), String(until), resources, triggers ?? null];
  const end = order === "ASC" ? until : above + 1n;
  type Row = EventRow & { last: string | null; looked: number };
  const rows =
    recordId === undefined
      ? await sql<Row>(scanText(order, allText), values)
      : await listSql<Row>(scanText(order, recordText(order)), [...values, recordId]);
  // The last row only shows how far the scan went.
  const bounds = rows.at(-1);
  const hasMore = bounds?.looked === portion;
  return { rows: rows.slice(0, -1), next: hasMore ? BigInt(bounds.last ?? end) : end, hasMore };
}

/**
 * Returns the verdicts of the first events, up to one that cannot be decided now: a skipped event
 * would never be shown. Throws when it is the first.
 */
async function judgeFirst(
  { judge }: EventFeedOptions,
  rows: readonly EventRow[],
  user: Caller,
  which?: "previous",
): Promise<readonly boolean[]> {
  const answers = await judge(
    rows.map(({ id, resource, ownerId }) => ({ event: { id, resource, owner_id: ownerId }, user })),
    which,
  );
  const verdicts: boolean[] = [];
  for (const answer of answers) {
    if (answer === undefined) break;
    verdicts.push(answer);
  }
  if (rows.length > 0 && verdicts.length === 0) throw new AppError("server.unavailable", "Server Error");
  return verdicts;
}

/** Presents a page, or as many of its first events as fit into a connection's limit. */
async function presentFitting(
  options: EventFeedOptions,
  rows: readonly EventRow[],
  caller: Caller,
): Promise<readonly FeedEvent[]> {
  try {
    const read = (most: number): Promise<readonly FeedEvent[]> =>
      present(options, rows.slice(0, most), caller);
    return (await readFitting(rows.length, read)).records;
  } catch (error) {
    if (databaseFaultOf(error).kind !== "too_large") throw error;
    // Otherwise the list could never continue past this event.
    return rows.slice(0, 1).map((row) => ({ id: row.id, json: jsonOf(row, tooLarge) }));
  }
}

async function present(
  options: EventFeedOptions,
  rows: readonly EventRow[],
  caller: Caller,
): Promise<readonly FeedEvent[]> {
  const { sql, present: presentAll } = options;
  if (rows.length === 0) return [];
  const changed = rows.filter(({ hasPrevious }) => hasPrevious);
  const judged = changed.length === 0 ? [] : await judgeFirst(options, changed, caller, "previous");
  const undecided = changed[judged.length];
  if (undecided !== undefined) throw new ResultTooLargeError(mostTextBytes, rows.indexOf(undecided));
  const shown = changed.filter((_, index) => judged[index]);
  const found = await sql<DataRow>(dataText, [rows.map(({ id }) => id), shown.map(({ id }) => id)]);
  const records = new Map(found.map(({ id, data }) => [id, data ?? erased]));
  const others = found.filter(({ snapshot }) => snapshot !== null);
  const made = await presentStored(presentAll, others, {
    userId: caller.id,
    mayBeFewer: rows.length > 1,
    away: () => new AppError("server.unavailable", "Server Error"),
  });
  for (const [id, texts] of made) {
    const old = typeof texts?.previous === "string" ? `,"previous":${texts.previous}` : "";
    records.set(id, texts === undefined ? unpresented : texts.data + old);
  }
  return rows.map((row) => ({ id: row.id, json: jsonOf(row, records.get(row.id) ?? "null") }));
}

/** JSON after `"data":` when the resource's transform fails; the log has the reason. */
const unpresented = 'null,"problem":"The transform of the resource fails for this record."';

const erased = 'null,"problem":"The record was erased."';

const tooLarge = 'null,"problem":"The record is larger than an answer may be."';

function jsonOf({ id, uuid, resource, trigger, recordId, occurredAt }: EventRow, data: string): string {
  const head = {
    id: Number(id),
    uuid,
    event: trigger,
    resource,
    record_id: recordId,
    occurred_at: occurredAt,
  };
  return `${JSON.stringify(head).slice(0, -1)},"data":${data}}`;
}
