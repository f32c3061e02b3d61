import { actingCte, actorText } from "../db/audit.ts";
import type { Actor } from "../kit/actor.ts";
import { getRow, type Sql, type Transact } from "../db/sql.ts";
import { noTracing, type Tracing } from "../telemetry/tracing.ts";
import { exactTotal, type Total } from "../querying/count.ts";
import { readPage, type NumberedPage } from "../querying/list-page.ts";
import type { AttemptResult, AttemptTrigger } from "./delivery.ts";
import {
  countOfRecordText,
  listText,
  resourcesText,
  estimateText,
  countText,
  type DeliveryFilter,
  type DeliveryOrder,
  type ListPart,
  type Narrowing,
} from "./history-texts.ts";
import {
  findDelivery,
  findExtraHeaders,
  selectDeliveries,
  type DeliveryRow,
  type ExtraHeaders,
} from "./delivery-row.ts";
import { findFirstSince, slackMs } from "./first-since.ts";
import { narrowText } from "./narrow-texts.ts";
import { retryDelivery, type RetryAnswer } from "./retry.ts";
import type { Payload } from "../events/present-stored.ts";
import { dataText } from "./store-texts.ts";

type StoredResult = Omit<AttemptResult, "detail" | "retryAfterSeconds">;

/** An attempt as it is stored. A part that its POST did not reach is null. */
export type AttemptRow = { readonly [Name in keyof StoredResult]: StoredResult[Name] | null } & {
  /** Number of the attempt, from 1. */
  readonly number: number;
  readonly trigger: AttemptTrigger;
};

/** Filter, order and page of the deliveries to read. */
interface DeliveryPart extends ListPart {
  readonly filter: DeliveryFilter;
  /** Default: the newest first. */
  readonly order?: DeliveryOrder | undefined;
}

/** A page without the total. */
export interface DeliveryPage {
  readonly rows: readonly DeliveryRow[];
  /** Id of the last delivery that a bounded search read; undefined when it reached the end. */
  readonly lookedTo?: string | undefined;
}

/** Reads deliveries for people and their programs, and makes manual retries. */
export interface DeliveryHistory {
  /** Reads a page by number. Its total is exact up to 10,000. */
  list(
    options: DeliveryPart & { readonly count?: "estimated" | "none" },
  ): Promise<Omit<NumberedPage<DeliveryRow>, "size">>;
  /** Reads a page without the total. */
  read(options: DeliveryPart): Promise<DeliveryPage>;
  find(id: string): Promise<DeliveryRow | undefined>;
  /** Returns the payload of an event's deliveries; undefined when it was erased. */
  payloadOf(event: Pick<DeliveryRow, "eventId" | "eventUuid">): Promise<Payload | undefined>;
  /** Returns how many bytes that is, without reading them; 0 when it was erased. */
  payloadBytesOf(eventId: string): Promise<number>;
  /** Returns the parts of a delivery's requests that `DeliveryRow` lacks. */
  extraHeadersOf(id: string): Promise<ExtraHeaders>;
  /** Returns the attempts in the order of their numbers. */
  attemptsOf(id: string): Promise<readonly AttemptRow[]>;
  /**
   * Asks the dispatchers to cancel the deliveries held for a user's subscription now. Returns their
   * number, counted up to 10,000. Returns undefined when the user has no such subscription.
   */
  discardHeld(options: {
    readonly subscriptionId: number;
    readonly userId: number;
    readonly actor: Actor;
    /** Transaction to join. Default: a new one. */
    readonly transaction?: Sql | undefined;
  }): Promise<number | undefined>;
  /**
   * Repeats a finished delivery: makes a new delivery of the same event, with its own UUID, due
   * now. A retrying delivery is made due now instead. Refuses when the subscription was deleted.
   * Refuses a new delivery when the chain has had `limit` manual retries.
   */
  retry(options: {
    readonly id: string;
    readonly limit: number;
    /**
     * Whether the subscriber may read the old row. Default: as decided for the original delivery.
     */
    readonly hasPrevious?: boolean | undefined;
    /** Transaction to join. Default: a new one. */
    readonly transaction?: Sql | undefined;
  }): Promise<RetryAnswer>;
}

/**
 * Most deliveries that one page searches for conditions without an index. They take 0.1 s. With a
 * cursor, the next page continues from there.
 */
const mostLookedThrough = 50_000;

/** Most events of a record for which its deliveries are found by event. */
const mostOfRecord = 10_000;

/** Larger totals are estimates: counting millions takes a second. */
const mostCounted = 10_000;

const discardText = `
  WITH ${actingCte("$4")}, own AS (
    SELECT id FROM svc.subscriptions, acting WHERE id = $1 AND user_id = $2
  ), newest AS (
    SELECT id FROM svc.deliveries WHERE held_at IS NOT NULL AND (subscription_id, id) >= ($1::int, 0) AND (subscription_id, id) <= ($1::int, 9223372036854775807)
    ORDER BY subscription_id DESC, id DESC LIMIT 1
  ), asked AS (
    INSERT INTO svc.discards AS discard (subscription_id, up_to) SELECT own.id, newest.id FROM own CROSS JOIN newest
    ON CONFLICT (subscription_id) DO UPDATE SET up_to = greatest(discard.up_to, EXCLUDED.up_to), asked_at = now()
  )
  SELECT held, CASE WHEN held > 0 THEN
    svc.record_audit('webhook.held_discarded', 'webhook', id::text, jsonb_build_object('held', held)) END AS entry
  FROM (
    SELECT own.id, (SELECT count(*)::int FROM (
      SELECT FROM svc.deliveries WHERE held_at IS NOT NULL AND (subscription_id, id) >= ($1::int, 0) AND (subscription_id, id) <= ($1::int, 9223372036854775807)
      LIMIT $3) AS counted) AS held
    FROM own OFFSET 0
  ) AS counted`;

const attemptsText = `
  SELECT number, started_at AS "startedAt", duration_ms AS "durationMs", status_code AS "statusCode", error,
    response_headers AS "responseHeaders", response_body AS "responseBody", response_truncated AS "isResponseTruncated",
    address, dns_ms AS "dnsMs", connect_ms AS "connectMs", tls_ms AS "tlsMs", first_byte_ms AS "firstByteMs", trigger
  FROM svc.attempts WHERE delivery_id = $1 ORDER BY number`;

/**
 * Creates a history. The cost of a read depends on its answer and not on the number of deliveries.
 */
export function createDeliveryHistory({
  sql,
  listSql,
  transact,
  tracing = noTracing,
  lookThrough = mostLookedThrough,
}: {
  readonly sql: Sql;
  /** Reads lists by index (`createIndexSql`); may have its own time limit. */
  readonly listSql: Sql;
  readonly transact: Transact;
  /** Makes a manual retry part of the request's trace, or otherwise of the failed delivery's. */
  readonly tracing?: Tracing;
  /** Most deliveries that one page searches for conditions without an index. */
  readonly lookThrough?: number;
}): DeliveryHistory {
  async function countUpTo(filter: DeliveryFilter, most: number): Promise<Total> {
    const { text, values } = countText(filter, most);
    return exactTotal((await getRow<{ count: number }>(listSql, text, values)).count);
  }

  /** Counts deliveries up to 10,000, and estimates a larger total. */
  async function estimate(filter: DeliveryFilter): Promise<Total> {
    const counted = await countUpTo(filter, mostCounted + 1);
    if (counted.total <= mostCounted) return counted;
    const { text, values } = estimateText(filter);
    const [row] = await listSql<{ "QUERY PLAN": [{ Plan: { "Plan Rows": number } }] }>(text, values);
    const planned = row?.["QUERY PLAN"][0].Plan["Plan Rows"] ?? 0;
    return { total: Math.max(counted.total, planned), isEstimate: true };
  }

  async function read(part: DeliveryPart): Promise<DeliveryPage> {
    const { filter, order = "desc" } = part;
    if (filter.narrowing !== undefined) return readNarrow(listSql, part, lookThrough);
    const { text, values } = listText(filter, order, part);
    const found = await listSql<DeliveryRow>(text, values);
    return { rows: sorted(found, order) };
  }

  return {
    read,
    async list({ count: mode = "estimated", ...part }) {
      const { filter, skip, take } = part;
      if (filter.narrowing !== undefined && mode !== "none") {
        const { rows, lookedTo, count: total } = await readNarrow(listSql, part, lookThrough);
        return { records: rows, total, isEstimate: lookedTo !== undefined, hasNext: false };
      }
      return readPage(
        { skip, take, count: mode },
        {
          read: async (size) => (await read({ ...part, take: size })).rows,
          // An exact count is of a page after the end.
          count: (kind) => (kind === "exact" ? countUpTo(filter, skip) : estimate(filter)),
        },
      );
    },
    find: (id) => findDelivery(sql, id),
    async payloadOf({ eventId, eventUuid }) {
      return (await sql<Payload>(dataText, [[eventId], [eventUuid]]))[0];
    },
    async payloadBytesOf(eventId) {
      const [size] = await sql<{ readonly bytes: number }>(payloadBytesText, [eventId]);
      return size?.bytes ?? 0;
    },
    extraHeadersOf: (id) => findExtraHeaders(sql, id),
    attemptsOf: (id) => sql<AttemptRow>(attemptsText, [id]),
    async discardHeld({ subscriptionId, userId, actor, transaction = sql }) {
      const values = [subscriptionId, userId, mostCounted, actorText(actor)];
      const [row] = await transaction<{ held: number }>(discardText, values);
      return row?.held;
    },
    retry({ transaction, ...asked }) {
      const { traceparent } = tracing.current() ?? {};
      return transact((own) => retryDelivery(own, { ...asked, traceparent }), transaction);
    },
  };
}

const payloadBytesText = `
  SELECT octet_length(data) + coalesce(octet_length(previous), 0) AS bytes FROM svc.event_data WHERE event_id = $1`;

function sorted(rows: readonly DeliveryRow[], order: DeliveryOrder): readonly DeliveryRow[] {
  const sign = order === "asc" ? 1 : -1;
  return rows.toSorted((one, other) => sign * Number(BigInt(one.id) - BigInt(other.id)));
}

/** Reads a page with conditions that have no index: searches a bounded number of deliveries. */
async function readNarrow(
  listSql: Sql,
  { filter, order = "desc", skip, take }: DeliveryPart,
  most: number,
): Promise<DeliveryPage & { readonly count: number }> {
  const { narrowing = {}, ...indexed } = filter;
  const { createdAfter, createdBefore } = narrowing;
  const idNear = async (date: Date | undefined, ms: number): Promise<bigint | undefined> =>
    date && findFirstSince(listSql, "deliveries", new Date(date.getTime() + ms));
  const [fromId, toId] = [await idNear(createdAfter, -slackMs), await idNear(createdBefore, slackMs)];
  const within: DeliveryFilter = {
    ...indexed,
    record: await recordOf(listSql, narrowing),
    fromId: inOrder(indexed.fromId, fromId).at(-1),
    toId: inOrder(indexed.toId, toId)[0],
  };
  const { text, values } = narrowText(within, narrowing, order, { skip, take, most });
  type Found = { readonly ids: readonly string[]; readonly count: number; readonly lookedTo: string | null };
  const { ids, count, lookedTo } = await getRow<Found>(listSql, text, values);
  const rows = await listSql<DeliveryRow>(`${selectDeliveries} WHERE delivery.id = ANY($1::bigint[])`, [ids]);
  return { rows: sorted(rows, order), count, lookedTo: lookedTo ?? undefined };
}

/**
 * Returns the filter that finds the deliveries of a record by their events. Undefined without a
 * record. Also undefined when the record has so many events that a search of the deliveries costs
 * less.
 */
async function recordOf(listSql: Sql, { recordId, resource }: Narrowing): Promise<DeliveryFilter["record"]> {
  if (recordId === undefined) return undefined;
  const resources =
    resource === undefined
      ? (await listSql<{ resource: string }>(resourcesText)).map((row) => row.resource)
      : [resource];
  const values = [resources, recordId, mostOfRecord + 1];
  const { count } = await getRow<{ count: number }>(listSql, countOfRecordText, values);
  return count > mostOfRecord ? undefined : { resources, recordId };
}

/** Sorts ids by their number. */
function inOrder(...ids: readonly (string | bigint | undefined)[]): readonly string[] {
  const known = ids.flatMap((id) => (id === undefined ? [] : [BigInt(id)]));
  return known.toSorted((one, other) => (one < other ? -1 : 1)).map(String);
}
