import { maxMessageBytes } from "../broker/message-limit.ts";
import type { Sql } from "../db/sql.ts";
import type { EventKind } from "./event.ts";
import {
  parseSnapshot,
  type Position,
  type Scan,
  type Scanned,
  type TransactionSnapshot,
} from "./outbox-cursor.ts";

/** A captured record change that is not fanned out yet. */
export interface OutboxEvent {
  /** Row id, as a decimal string. */
  readonly id: string;
  readonly uuid: string;
  readonly resource: string;
  readonly trigger: EventKind;
  readonly recordId: string;
  readonly ownerId: string | null;
  /** As the capture trigger encoded it; `rowOfSnapshot` decodes it. */
  readonly snapshot: Readonly<Record<string, unknown>>;
  /** The old row of an update, in the same form; null where none is kept. */
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

/** The events of the outbox that one relay publishes. */
export interface Share {
  /** `application_name` of the relay's process: it publishes the events that this process wrote. */
  readonly name: string;
  /** Names of the other running relays, which publish their own events. */
  readonly others: readonly string[];
  /** Events of other writers are divided by their ids: this is the relay's remainder. */
  readonly index: number;
}

/** An event of which no message may hold the record has no snapshot: it is not read. */
export interface FoundEvent extends Omit<OutboxEvent, "snapshot"> {
  readonly snapshot: OutboxEvent["snapshot"] | null;
}

export interface OutboxRead {
  /** Process of PostgreSQL that ran the statement. */
  readonly session: number;
  readonly snapshot: TransactionSnapshot;
  /** Each event once. */
  readonly events: readonly FoundEvent[];
  readonly scanned: readonly Scanned[];
}

/** The events that are not fanned out yet. The fan-out removes them; nothing here writes. */
export interface Outbox {
  /**
   * Reads all scans in one snapshot. Takes events of all resources in turn, so that a backlog of
   * one holds up no other.
   *
   * @param known Ids to leave out.
   * @param maxBytes Limit of the snapshots' sizes; a larger first event is read all the same.
   */
  read(options: {
    readonly scans: readonly Scan[];
    readonly share: Share;
    readonly known: readonly string[];
    readonly limit: number;
    readonly maxBytes: number;
  }): Promise<OutboxRead>;
  /** Returns the events with these ids that are still in the outbox. */
  find(ids: readonly string[]): Promise<readonly FoundEvent[]>;
  /** Returns the ids that are still in the outbox. */
  waiting(ids: readonly string[]): Promise<ReadonlySet<string>>;
  /** Returns every resource that has events in the outbox. */
  resources(): Promise<readonly string[]>;
}

/**
 * Above this size, a record that is shown as it was captured makes no message. JSONB takes more
 * than its text only for numbers: some 12 bytes of each field.
 */
const surelyTooLarge = maxMessageBytes + 64 * 1024;

/**
 * Reads the event of a row, without a record that is surely too large: one of 17 MB took 100 ms of
 * the relay's only thread. An old row in `previous` counts too, and may be left out of the message.
 *
 * Its `LIMIT` keeps PostgreSQL from making a join of it. A join that was
 * planned while the table was empty read all events for each row: 80 ms with 4,000 of them.
 *
 * @param shownAsCaptured Parameter with the names of such resources.
 */
function eventOf(row: string, shownAsCaptured: string): string {
  return `
    SELECT event.uuid, event.resource, event.trigger, event.record_id AS "recordId", event.owner_id AS "ownerId",
      CASE WHEN ${row}.bytes <= ${surelyTooLarge} OR event.previous IS NOT NULL OR event.resource <> ALL(${shownAsCaptured}::text[])
        THEN event.snapshot END AS snapshot, event.previous, event.traceparent, to_char(event.occurred_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS timestamp
    FROM svc.events AS event WHERE event.id = ${row}.event_id LIMIT 1`;
}

// Positions and not "id > last": ids and transaction ids are given out in another order than
// commits happen (see outbox-cursor.ts).
const readText = `
  WITH scan AS (
    SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[]) WITH ORDINALITY
      AS given (resource, from_transaction, from_event, to_transaction, to_event, number)
  ), found AS MATERIALIZED (
    SELECT scan.number, entry.event_id, entry.transaction_id, entry.bytes,
      row_number() OVER (PARTITION BY scan.number ORDER BY entry.transaction_id, entry.event_id) AS place,
      count(*) OVER (PARTITION BY scan.number) AS of_scan
    FROM scan CROSS JOIN LATERAL (
      SELECT event_id, transaction_id, bytes FROM svc.outbox
      WHERE resource = scan.resource
        AND (transaction_id, event_id) > (scan.from_transaction, scan.from_event)
        AND (transaction_id, event_id) <= (scan.to_transaction, scan.to_event)
        AND (writer = $6 OR (writer <> ALL($7::text[]) AND event_id % $8 = $9))
        AND event_id <> ALL($10::bigint[])
      ORDER BY transaction_id, event_id
      LIMIT $11
    ) AS entry
  ), chosen AS (
    SELECT *, sum(bytes) OVER (ORDER BY place, number) - bytes AS before FROM found ORDER BY place, number LIMIT $11
  )
  SELECT pg_current_snapshot()::text AS "readIn", pg_backend_pid() AS session, (SELECT count(*)::int FROM found) AS "foundInAll", taken.*
  FROM (VALUES (1)) AS one LEFT JOIN (
    SELECT chosen.event_id AS id, chosen.number::int, chosen.place::int, chosen.of_scan::int AS "ofScan", chosen.transaction_id AS transaction, chosen.bytes, event.*
    FROM chosen LEFT JOIN LATERAL (${eventOf("chosen", "$13")}) AS event ON true
    WHERE chosen.before < $12
  ) AS taken ON true
  ORDER BY taken.place, taken.number`;

interface ReadRow extends Omit<FoundEvent, "uuid"> {
  readonly uuid: string | null;
  readonly readIn: string;
  readonly session: number;
  readonly foundInAll: number;
  /** Number of the scan, from 1; null when nothing was found. */
  readonly number: number | null;
  readonly place: number;
  readonly ofScan: number;
}

const findText = `
  SELECT entry.event_id AS id, entry.transaction_id AS transaction, entry.bytes, event.*
  FROM svc.outbox AS entry CROSS JOIN LATERAL (${eventOf("entry", "$2")}) AS event
  WHERE entry.event_id = ANY($1::bigint[])
  ORDER BY entry.event_id`;

const waitingText = `SELECT event_id AS id FROM svc.outbox WHERE event_id = ANY($1::bigint[])`;

// Goes from one resource to the next by the index, however many events each has.
const resourcesText = `
  WITH RECURSIVE waiting AS (
    (SELECT resource FROM svc.outbox ORDER BY resource LIMIT 1)
    UNION ALL
    SELECT (SELECT entry.resource FROM svc.outbox AS entry WHERE entry.resource > waiting.resource ORDER BY entry.resource LIMIT 1)
    FROM waiting WHERE waiting.resource IS NOT NULL
  )
  SELECT resource FROM waiting WHERE resource IS NOT NULL`;

/** @param shownAsCaptured Names of resources of which messages show each field as it is. */
export function createOutbox({
  sql,
  shownAsCaptured = [],
}: {
  readonly sql: Sql;
  readonly shownAsCaptured?: readonly string[];
}): Outbox {
  return {
    async read({ scans, share, known, limit, maxBytes }) {
      const rows = await sql<ReadRow>(readText, [
        scans.map(({ resource }) => resource),
        scans.map(({ range }) => range.from.transaction),
        scans.map(({ range }) => range.from.event),
        scans.map(({ range }) => range.to.transaction),
        scans.map(({ range }) => range.to.event),
        share.name,
        share.others,
        share.others.length + 1,
        share.index,
        known,
        limit,
        maxBytes,
        shownAsCaptured,
      ]);
      const [first] = rows;
      if (first === undefined) throw new Error("The statement returned no row.");
      const found = rows.filter(({ number }) => number !== null);
      const scanned = scans.map((scan, index): Scanned => {
        const own = found.filter(({ number }) => number === index + 1);
        const end = own.at(-1);
        const isWhole = end === undefined ? found.length === first.foundInAll : own.length === end.ofScan;
        return {
          scan,
          last: end && positionOf(end),
          hasMore: !isWhole || own.length === limit,
        };
      });
      // An event that was deleted by hand has no row.
      const present = found.flatMap((row) => (row.uuid === null ? [] : [{ ...row, uuid: row.uuid }]));
      const events = [...new Map(present.map((row) => [row.id, row])).values()];
      return { session: first.session, snapshot: parseSnapshot(first.readIn), events, scanned };
    },
    async find(ids) {
      return ids.length === 0
        ? []
        : sql<FoundEvent & Record<string, unknown>>(findText, [ids, shownAsCaptured]);
    },
    async waiting(ids) {
      if (ids.length === 0) return new Set();
      return new Set((await sql<{ id: string }>(waitingText, [ids])).map(({ id }) => id));
    },
    async resources() {
      return (await sql<{ resource: string }>(resourcesText)).map(({ resource }) => resource);
    },
  };
}

/** Returns the position of an event in the order of its resource's events. */
export function positionOf({ transaction, id }: Pick<OutboxEvent, "transaction" | "id">): Position {
  return { transaction: BigInt(transaction), event: BigInt(id) };
}
