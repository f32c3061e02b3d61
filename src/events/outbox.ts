import { maxMessageBytes, mostReadBytes } from "../broker/message-limit.ts";
import { byKey, valuesCte, type Sql } from "../db/sql.ts";
import type { EventKind } from "./event.ts";
import {
  parseSnapshot,
  type Position,
  type Scan,
  type Scanned,
  type TransactionSnapshot,
} from "./outbox-cursor.ts";
import type { Share } from "./relay-shares.ts";

/** A captured record change that is not fanned out yet. */
export interface OutboxEvent {
  /** Row id, as a decimal string. */
  readonly id: string;
  readonly uuid: string;
  readonly resource: string;
  readonly trigger: EventKind;
  readonly recordId: string;
  readonly ownerId: string | null;
  /** The record as the capture trigger encoded it; `rowOfSnapshot` decodes it. */
  readonly snapshot: Readonly<Record<string, unknown>>;
  /** The old row of an update, in the same form; null when no old row is kept. */
  readonly previous?: Readonly<Record<string, unknown>> | null;
  /** Time of the event: UTC, ISO 8601 with microseconds and a trailing `Z`. */
  readonly timestamp: string;
  /** W3C `traceparent` of the writer; null when the writer is not traced. */
  readonly traceparent: string | null;
  /** Approximate size of the snapshot. */
  readonly bytes: number;
  /** Id of the writer's transaction, as a decimal string. */
  readonly transaction: string;
}

/** An event in the outbox. It has no snapshot when its record is too large for a message. */
export interface FoundEvent extends Omit<OutboxEvent, "snapshot"> {
  readonly snapshot: OutboxEvent["snapshot"] | null;
  /** Whether an earlier read had left the event over. */
  readonly isLeftOver?: boolean;
}

export interface InFlight {
  readonly events: number;
  readonly bytes: number;
}

/**
 * Division of a read's capacity among holders, by dynamic thresholds (Choudhury and Hahne, 1998). A
 * holder may have at most as much in flight as is free, so another holder can always begin.
 */
export interface ReadLimits {
  /** Events in flight of each holder, by `holderOf`, without those of costly resources. */
  readonly used: ReadonlyMap<string, InFlight>;
  readonly free: InFlight;
  /**
   * A holder with this much in flight gets no events that earlier reads left over. New events
   * therefore do not wait behind their holder's backlog.
   */
  readonly catchUpBelow: InFlight;
  /** Resources and holders whose events the read leaves in the outbox. */
  readonly full: readonly (readonly [resource: string, holder: string])[];
}

/** Returns the holder of an event: its owner, or its resource when records have no owner. */
export function holderOf({ ownerId, resource }: Pick<OutboxEvent, "ownerId" | "resource">): string {
  return ownerId ?? `resource ${resource}`;
}

export interface OutboxRead {
  /**
   * Id of the database session, unique across restarts of the server. In a container, processes
   * have the same numbers after each start.
   */
  readonly session: string;
  readonly snapshot: TransactionSnapshot;
  /** The events, each once. */
  readonly events: readonly FoundEvent[];
  readonly scanned: readonly Scanned[];
}

/**
 * The events that are not fanned out yet. The fan-out removes them; the outbox itself never writes.
 */
export interface Outbox {
  /**
   * Reads all scans in one snapshot. Takes events of all holders in turn, so that the backlog of
   * one holder delays no other.
   *
   * @param known Ids to leave out.
   * @param limits Division among holders; undefined when a holder may have all.
   * @param maxBytes Most bytes of all snapshots; a larger first event is still read.
   */
  read(options: {
    readonly scans: readonly Scan[];
    readonly share: Share;
    readonly known: readonly string[];
    readonly limit: number;
    readonly maxBytes: number;
    readonly limits?: ReadLimits;
  }): Promise<OutboxRead>;
  /**
   * Returns the events with these ids that are still in the outbox, oldest first.
   *
   * @param maxBytes Most bytes of all snapshots; a larger first event is still read. Default: no
   *   limit.
   */
  find(ids: readonly string[], maxBytes?: number): Promise<readonly FoundEvent[]>;
  /** Returns the transactions of the events with these ids that are still in the outbox, by id. */
  waiting(ids: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /** Returns every resource that has events in the outbox. */
  resources(): Promise<readonly string[]>;
}

/**
 * Above this size, a record whose fields are shown unchanged is too large for a message. JSONB
 * takes more space than its text only for numbers: about 12 bytes per field.
 */
const surelyTooLarge = maxMessageBytes + 64 * 1024;
/**
 * Above this size, the text is measured too. It takes up to 20 times as much: 310 bytes for the
 * number 1e308 instead of 16. A read whose result exceeds the limit of the connection would stop
 * the events of all resources.
 */
const surelyFits = Math.floor(mostReadBytes / 20);
/**
 * Reads the event of a row, without a record that is surely too large: one of 17 MB took 100 ms of
 * the relay's only thread. An old row in `previous` counts too, and may be left out of the message.
 *
 * `LIMIT` keeps PostgreSQL from turning it into a join. A join that was planned while the table was
 * empty read all events for each row: 80 ms with 4,000 of them.
 *
 * @param shownAsCaptured Parameter with the names of resources whose fields are shown unchanged.
 */
function eventOf(row: string, shownAsCaptured: string): string {
  const isRead = `${row}.bytes <= ${surelyTooLarge} OR ${row}.bytes <= ${mostReadBytes} AND (event.previous IS NOT NULL OR event.resource <> ALL(${shownAsCaptured}::text[]))`;
  const textBytes = "octet_length(event.snapshot::text) + coalesce(octet_length(event.previous::text), 0)";
  return `
    SELECT event.uuid, event.resource, event.trigger, event.record_id AS "recordId", event.owner_id AS "ownerId",
      CASE WHEN is_read THEN event.snapshot END AS snapshot, CASE WHEN is_read THEN event.previous END AS previous, event.traceparent, to_char(event.occurred_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS timestamp
    FROM (SELECT event.*, (${isRead}) AND (${row}.bytes <= ${surelyFits} OR ${textBytes} <= ${mostReadBytes}) AS is_read FROM svc.events AS event WHERE event.id = ${row}.event_id LIMIT 1) AS event`;
}

/**
 * Most events of a scan that looks far, in 3 ms for each 1,000. This many reach the few events of
 * one owner after the many of another, such as batches of 1,000. Further events are left over.
 */
const mostLookedAt = 3_000;
/**
 * Most entries that all scans of one read examine, including entries of other relays. Each scan may
 * examine `mostLookedAt`. Without a limit, two million entries of another relay took longer than a
 * statement may. The relay then published nothing until the other one had published them.
 */
const mostGoneThrough = 20_000;

// Uses positions instead of "id > last". Ids and transaction ids are not in the order of commits
// (see outbox-cursor.ts).
const readText = `
  WITH scan AS (
    SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $14::boolean[], $22::int[], $24::int[]) WITH ORDINALITY
      AS given (resource, from_transaction, from_event, to_transaction, to_event, is_new, division, looked, number)
  ), found AS MATERIALIZED (
    SELECT scan.number, scan.resource, scan.is_new, entry.*, coalesce(entry.owner_id, 'resource ' || scan.resource) AS holder,
      row_number() OVER (PARTITION BY scan.number ORDER BY entry.transaction_id, entry.event_id) AS place
    FROM scan CROSS JOIN LATERAL (
      SELECT event_id, transaction_id, owner_id, bytes, is_own, nth FROM (
        SELECT event_id, transaction_id, owner_id, bytes, row_number() OVER (ORDER BY transaction_id, event_id) AS nth,
          (writer = $6 OR (NOT ($7::jsonb[])[scan.division] ? writer AND event_id % ($8::int[])[scan.division] = ($9::int[])[scan.division]))
            AND event_id <> ALL($10::bigint[]) AS is_own
        FROM svc.outbox
        WHERE resource = scan.resource
          AND (transaction_id, event_id) > (scan.from_transaction, scan.from_event)
          AND (transaction_id, event_id) <= (scan.to_transaction, scan.to_event)
        ORDER BY transaction_id, event_id LIMIT $23::int
      ) AS gone_through
      WHERE is_own OR nth = $23::int
      ORDER BY transaction_id, event_id
      LIMIT scan.looked
    ) AS entry
  ), in_turn AS (
    SELECT *, row_number() OVER own AS turn, sum(bytes) OVER own - bytes AS own_before
    FROM found WHERE is_own AND NOT EXISTS (
      SELECT FROM unnest($25::text[], $26::text[]) AS full_of (resource, holder)
      WHERE full_of.resource = found.resource AND full_of.holder = found.holder
    )
    WINDOW own AS (PARTITION BY holder, is_new ORDER BY place, number)
  ), chosen AS (
    SELECT *, sum(bytes) OVER (ORDER BY turn, is_new DESC, bytes, number, place) - bytes AS before
    FROM in_turn LEFT JOIN unnest($15::text[], $16::int[], $17::bigint[]) AS used (holder, used_events, used_bytes) USING (holder)
    WHERE coalesce(used_events, 0) + 2 * turn - 1 <= $18::int AND coalesce(used_bytes, 0) + 2 * own_before < $19::bigint
      AND (is_new OR (coalesce(used_events, 0) < $20::int AND coalesce(used_bytes, 0) < $21::bigint))
    ORDER BY turn, is_new DESC, bytes, number, place LIMIT $11::int
  )
  SELECT pg_current_snapshot()::text AS "readIn", concat(pg_backend_pid(), ' ', pg_postmaster_start_time()) AS session, taken.*,
    (SELECT array_agg((SELECT count(*)::int FROM found WHERE found.number = scan.number AND is_own) ORDER BY scan.number) FROM scan) AS "foundIn",
    (SELECT json_object_agg(number, ARRAY[transaction_id::text, event_id::text]) FROM found WHERE nth = $23::int) AS "cutAt"
  FROM (VALUES (1)) AS one LEFT JOIN (
    SELECT chosen.event_id AS id, chosen.number::int, chosen.place::int, chosen.turn, NOT chosen.is_new AS "isLeftOver", chosen.transaction_id AS transaction, chosen.bytes, event.*
    FROM chosen LEFT JOIN LATERAL (${eventOf("chosen", "$13")}) AS event ON true
    WHERE chosen.before < $12
  ) AS taken ON true
  ORDER BY taken.turn, taken.number, taken.place`;

interface ReadRow extends Omit<FoundEvent, "uuid"> {
  readonly uuid: string | null;
  readonly readIn: string;
  readonly session: string;
  /** Number of events that each scan found. */
  readonly foundIn: readonly number[] | null;
  /** The last entry of each scan that reached its limit, by number. */
  readonly cutAt: Readonly<Record<string, readonly [transaction: string, event: string]>> | null;
  /** Number of the scan, from 1; null when nothing was taken. */
  readonly number: number | null;
  /** Place among the events that the scan found, from 1. */
  readonly place: number;
}

const findText = `
  SELECT entry.event_id AS id, entry.transaction_id AS transaction, entry.bytes, event.*
  FROM (
    SELECT entry.*, sum(entry.bytes) OVER (ORDER BY entry.event_id) - entry.bytes AS before
    FROM unnest($1::bigint[]) AS asked (id)
    CROSS JOIN LATERAL (SELECT * FROM svc.outbox WHERE ${byKey("event_id", "asked.id")}) AS entry
  ) AS entry CROSS JOIN LATERAL (${eventOf("entry", "$2")}) AS event
  WHERE entry.before < $3::bigint
  ORDER BY entry.event_id`;

const waitingText = `
  SELECT entry.event_id AS id, entry.transaction_id AS transaction FROM unnest($1::bigint[]) AS asked (id)
  CROSS JOIN LATERAL (SELECT event_id, transaction_id FROM svc.outbox WHERE ${byKey("event_id", "asked.id")}) AS entry`;

const resourcesText = `
  WITH RECURSIVE ${valuesCte("waiting", "resource", { table: "svc.outbox" })}
  SELECT resource FROM waiting WHERE resource IS NOT NULL`;

const endless: InFlight = { events: 2 ** 31 - 1, bytes: Number.MAX_SAFE_INTEGER };
const unlimited: ReadLimits = { used: new Map(), free: endless, catchUpBelow: endless, full: [] };

/** @param shownAsCaptured Names of resources whose messages show each field unchanged. */
export function createOutbox({
  sql,
  shownAsCaptured = [],
}: {
  readonly sql: Sql;
  readonly shownAsCaptured?: readonly string[];
}): Outbox {
  return {
    read: (options) => read({ sql, shownAsCaptured }, options),
    async find(ids, maxBytes = Number.MAX_SAFE_INTEGER) {
      return ids.length === 0 ? [] : sql<FoundEvent>(findText, [ids, shownAsCaptured, maxBytes]);
    },
    async waiting(ids) {
      if (ids.length === 0) return new Map();
      const rows = await sql<Pick<OutboxEvent, "id" | "transaction">>(waitingText, [ids]);
      return new Map(rows.map(({ id, transaction }) => [id, transaction]));
    },
    async resources() {
      return (await sql<{ resource: string }>(resourcesText)).map(({ resource }) => resource);
    },
  };
}

async function read(
  { sql, shownAsCaptured }: { readonly sql: Sql; readonly shownAsCaptured: readonly string[] },
  { scans, share, known, limit, maxBytes, limits = unlimited }: Parameters<Outbox["read"]>[0],
): Promise<OutboxRead> {
  const holders = holdersThatCount(limits);
  const { texts, divisions, places } = divide(share, scans);
  const rows = await sql<ReadRow>(readText, [
    scans.map(({ resource }) => resource),
    listOf(scans.map(({ range }) => range.from.transaction)),
    listOf(scans.map(({ range }) => range.from.event)),
    listOf(scans.map(({ range }) => range.to.transaction)),
    listOf(scans.map(({ range }) => range.to.event)),
    share.name,
    texts,
    listOf(divisions.map(({ length }) => length + 1)),
    listOf(divisions.map((others) => others.filter((other) => other < share.name).length)),
    listOf(known),
    limit,
    maxBytes,
    shownAsCaptured,
    listOf(scans.map(({ isNew }) => isNew)),
    holders.map(([holder]) => holder),
    listOf(holders.map(([, { events }]) => events)),
    listOf(holders.map(([, { bytes }]) => bytes)),
    limits.free.events,
    limits.free.bytes,
    limits.catchUpBelow.events,
    limits.catchUpBelow.bytes,
    listOf(places),
    Math.max(mostLookedAt, Math.floor(mostGoneThrough / Math.max(1, scans.length))),
    listOf(scans.map((scan) => lookedAt(scan, limit))),
    limits.full.map(([resource]) => resource),
    limits.full.map(([, holder]) => holder),
  ]);
  const [first] = rows;
  if (first === undefined) throw new Error("The statement returned no row.");
  const found = rows.filter(({ number }) => number !== null);
  const scanned = scans.map((scan, index): Scanned => {
    const own = found.filter(({ number }) => number === index + 1);
    const [transaction = "0", id = "0"] = first.cutAt?.[index + 1] ?? [];
    const end = {
      found: first.foundIn?.[index] ?? 0,
      looked: lookedAt(scan, limit),
      cutAt: id === "0" ? undefined : positionOf({ transaction, id }),
    };
    return { scan, ...endOf(own, end) };
  });
  // An outbox entry whose event was deleted by hand has no row.
  const present = found.flatMap((row) => (row.uuid === null ? [] : [{ ...row, uuid: row.uuid }]));
  const events = [...new Map(present.map((row) => [row.id, row])).values()];
  return { session: first.session, snapshot: parseSnapshot(first.readIn), events, scanned };
}

/**
 * Returns the text of an array without texts. With 100 resources, pg took 0.1 ms a read to quote
 * each item.
 */
function listOf(items: readonly (string | number | bigint | boolean)[]): string {
  return `{${items.join(",")}}`;
}

/**
 * Returns the holders with more in flight than a tenth of what would stop them. At 100 changes a
 * second of as many users, some 60 have something in flight. Their lists took 20 us a read.
 */
function holdersThatCount({
  used,
  free,
  catchUpBelow,
}: ReadLimits): readonly (readonly [string, InFlight])[] {
  const events = Math.min(free.events, catchUpBelow.events) / 10;
  const bytes = Math.min(free.bytes, catchUpBelow.bytes) / 10;
  const found: (readonly [string, InFlight])[] = [];
  for (const one of used) if (one[1].events > events || one[1].bytes > bytes) found.push(one);
  return found;
}

function lookedAt({ looksFar }: Scan, limit: number): number {
  return looksFar ? Math.max(limit, mostLookedAt) : limit;
}

/**
 * Returns the position at which a scan ended.
 *
 * @param own The rows that were taken from the scan.
 */
function endOf(
  own: readonly ReadRow[],
  {
    found,
    looked,
    cutAt,
  }: { readonly found: number; readonly looked: number; readonly cutAt: Position | undefined },
): Pick<Scanned, "last" | "hasMore"> {
  if (cutAt !== undefined && own.length === found) return { last: cutAt, hasMore: true };
  const inOrder = own.toSorted((one, other) => one.place - other.place);
  const end = inOrder.findLast(({ place }, before) => place === before + 1);
  return { last: end && positionOf(end), hasMore: own.length < found || found === looked };
}

/**
 * Returns the relays among which the events of each scan are divided. When all relays know all
 * resources, all scans have one division.
 */
function divide(
  { others }: Share,
  scans: readonly Scan[],
): {
  /** Names of the other relays, as JSON. */
  readonly texts: readonly string[];
  readonly divisions: readonly (readonly string[])[];
  /** Number of the division of each scan, from 1. */
  readonly places: readonly number[];
} {
  const divisions = new Map<string, readonly string[]>();
  const ofScans = scans.map(({ resource }) => {
    const knowing = others.filter(({ resources }) => resources?.has(resource) ?? true);
    const names = knowing.map(({ name }) => name);
    const text = JSON.stringify(names);
    divisions.set(text, names);
    return text;
  });
  const texts = [...divisions.keys()];
  return {
    texts,
    divisions: [...divisions.values()],
    places: ofScans.map((text) => texts.indexOf(text) + 1),
  };
}

/** Returns the position of an event in the order of its resource's events. */
export function positionOf({ transaction, id }: Pick<OutboxEvent, "transaction" | "id">): Position {
  return { transaction: BigInt(transaction), event: BigInt(id) };
}
