import { randomUUID } from "node:crypto";
import type { Sql, Transact } from "../db/sql.ts";
import { noTracing, type Tracing } from "../telemetry/tracing.ts";
import type { AttemptTrigger, DeliveryStatus } from "./delivery.ts";
import {
  listText,
  estimateText,
  countText,
  type DeliveryFilter,
  type DeliveryOrder,
} from "./history-texts.ts";
import { keepFromPruning } from "./prune.ts";
import { dataText, timestampOfEvent } from "./store-texts.ts";

export interface DeliveryRow {
  /** Row ids are decimal strings. */
  readonly id: string;
  readonly uuid: string;
  readonly eventId: string;
  readonly eventUuid: string;
  readonly subscriptionId: number;
  readonly userId: number;
  readonly parentDeliveryId: string | null;
  readonly rootDeliveryId: string;
  readonly triggerKind: "automatic" | "manual";
  readonly resource: string;
  /** Trigger, record and time of the event; the time is UTC with microseconds. */
  readonly event: string;
  readonly recordId: string;
  readonly occurredAt: string;
  readonly status: DeliveryStatus;
  readonly attempt: number;
  readonly maxAttempts: number;
  readonly url: string;
  readonly lastError: string | null;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  /** Null when the delivery is finished, in flight, or waits for a slot or its subscription. */
  readonly nextAttemptAt: Date | null;
}

export interface AttemptRow {
  /** From 1. */
  readonly number: number;
  readonly startedAt: Date;
  readonly durationMs: number;
  readonly statusCode: number | null;
  readonly error: string | null;
  readonly responseHeaders: unknown;
  readonly responseBody: Buffer | null;
  readonly responseTruncated: boolean;
  readonly address: string | null;
  readonly dnsMs: number | null;
  readonly connectMs: number | null;
  readonly tlsMs: number | null;
  readonly firstByteMs: number | null;
  readonly trigger: AttemptTrigger;
}

/** Which deliveries are read. */
export interface DeliveryPart {
  readonly filter: DeliveryFilter;
  /** Default: the newest first. */
  readonly order?: DeliveryOrder;
  readonly skip: number;
  readonly take: number;
}

export interface DeliveryList {
  readonly rows: readonly DeliveryRow[];
  /** Exact up to 10,000. An estimate is never below what this page proves. */
  readonly total: number;
  readonly isEstimate: boolean;
}

export type RetryAnswer =
  | { readonly kind: "created"; readonly delivery: DeliveryRow }
  | { readonly kind: "refused"; readonly reason: string };

/** Reads deliveries for people and their programs, and makes manual retries. */
export interface DeliveryHistory {
  /** A page, counted. */
  list(options: DeliveryPart): Promise<DeliveryList>;
  /** A page, not counted. */
  read(options: DeliveryPart): Promise<readonly DeliveryRow[]>;
  find(id: string): Promise<DeliveryRow | undefined>;
  /** Returns the JSON of the record that a delivery carries; undefined when it was erased. */
  dataOf(eventId: string): Promise<string | undefined>;
  /** Returns the attempts in the order of their numbers. */
  attemptsOf(id: string): Promise<readonly AttemptRow[]>;
  /**
   * Makes a new delivery of the same event, with a UUID of its own, due now. Refuses unless the
   * delivery has failed, its subscription exists, and its chain has had fewer manual retries than
   * `limit`.
   */
  retry(options: {
    readonly id: string;
    readonly limit: number;
    /** To be a part of; default: one of its own. */
    readonly transaction?: Sql | undefined;
  }): Promise<RetryAnswer>;
}

/** Larger totals are estimates: counting millions takes a second. */
const mostCounted = 10_000;

const columns = `delivery.id, delivery.uuid, delivery.event_id AS "eventId", delivery.event_uuid AS "eventUuid",
    delivery.subscription_id AS "subscriptionId", delivery.user_id AS "userId", delivery.parent_delivery_id AS "parentDeliveryId",
    delivery.root_delivery_id AS "rootDeliveryId", delivery.trigger_kind AS "triggerKind", delivery.status, delivery.attempt,
    delivery.max_attempts AS "maxAttempts", delivery.url, delivery.last_error AS "lastError",
    delivery.created_at AS "createdAt", delivery.updated_at AS "updatedAt", delivery.resource,
    event.trigger AS event, event.record_id AS "recordId", ${timestampOfEvent} AS "occurredAt",
    (SELECT due_at FROM svc.delivery_queue WHERE delivery_id = delivery.id) AS "nextAttemptAt"`;
// OFFSET 0: one event by its key for each delivery that is shown, whatever the planner expects.
const withEvent = `LEFT JOIN LATERAL (
    SELECT trigger, record_id, occurred_at FROM svc.events WHERE id = delivery.event_id OFFSET 0) AS event ON true`;

const findText = `SELECT ${columns} FROM svc.deliveries AS delivery ${withEvent} WHERE delivery.id = $1`;

const attemptsText = `
  SELECT number, started_at AS "startedAt", duration_ms AS "durationMs", status_code AS "statusCode", error,
    response_headers AS "responseHeaders", response_body AS "responseBody", response_truncated AS "responseTruncated",
    address, dns_ms AS "dnsMs", connect_ms AS "connectMs", tls_ms AS "tlsMs", first_byte_ms AS "firstByteMs", trigger
  FROM svc.attempts WHERE delivery_id = $1 ORDER BY number`;

// Locks the root's row: two retries of one chain at the same time would both find room under the
// limit. The next statement sees what the earlier retry has written.
const lockChainText = `
  SELECT FROM svc.deliveries
  WHERE id = (SELECT root_delivery_id FROM svc.deliveries WHERE id = $1) FOR NO KEY UPDATE`;

const retryText = `
  WITH failed AS MATERIALIZED (
    SELECT delivery.*, subscription.url AS "urlNow",
      (SELECT count(*) FROM svc.deliveries AS other
        WHERE other.root_delivery_id = delivery.root_delivery_id AND other.trigger_kind = 'manual') AS retries
    FROM svc.deliveries AS delivery LEFT JOIN svc.subscriptions AS subscription ON subscription.id = delivery.subscription_id
    WHERE delivery.id = $1
  ), made AS (
    INSERT INTO svc.deliveries (uuid, event_id, event_uuid, subscription_id, user_id, resource, parent_delivery_id, root_delivery_id,
      trigger_kind, max_attempts, url, traceparent)
    SELECT $3::uuid, event_id, event_uuid, subscription_id, user_id, resource, id, root_delivery_id, 'manual', max_attempts, "urlNow",
      coalesce($4, traceparent)
    FROM failed WHERE status = 'failed' AND "urlNow" IS NOT NULL AND retries < $2
    RETURNING id, subscription_id, user_id
  ), queued AS (
    INSERT INTO svc.delivery_queue (delivery_id, subscription_id, user_id, due_at, is_retry)
    SELECT id, subscription_id, user_id, date_trunc('milliseconds', now()), false FROM made
  )
  SELECT failed.status AS "statusBefore", failed."urlNow", made.id FROM failed LEFT JOIN made ON true`;

interface RetriedRow extends Record<string, unknown> {
  readonly statusBefore: string;
  readonly urlNow: string | null;
  /** The new delivery. */
  readonly id: string | null;
}

/**
 * Creates a history whose reads cost as much as their answers, however many deliveries there are.
 */
export function createDeliveryHistory({
  sql,
  listSql,
  transact,
  tracing = noTracing,
}: {
  readonly sql: Sql;
  /** Reads lists by index (`createIndexSql`), perhaps with a time limit of its own. */
  readonly listSql: Sql;
  readonly transact: Transact;
  /** Makes a manual retry part of the request's trace, or else of the failed delivery's. */
  readonly tracing?: Tracing;
}): DeliveryHistory {
  /** Estimates a total above 10,000. */
  async function estimate(filter: DeliveryFilter): Promise<number> {
    const { text, values } = estimateText(filter);
    const [row] = await listSql<{ "QUERY PLAN": [{ Plan: { "Plan Rows": number } }] }>(text, values);
    return Math.max(mostCounted + 1, row?.["QUERY PLAN"][0].Plan["Plan Rows"] ?? 0);
  }

  async function read({ filter, order = "desc", skip, take }: DeliveryPart): Promise<readonly DeliveryRow[]> {
    const { text, values } = listText(filter, order, columns, withEvent);
    const found = await listSql<DeliveryRow & Record<string, unknown>>(text, [skip, take, ...values]);
    const sign = order === "asc" ? 1 : -1;
    return found.toSorted((one, other) => sign * Number(BigInt(one.id) - BigInt(other.id)));
  }

  return {
    read,
    async list({ filter, order, skip, take }) {
      // Reads one more row than asked for, so that page links lead to the end however wrong an
      // estimate is.
      const found = await read({ filter, ...(order && { order }), skip, take: take + 1 });
      const rows = found.slice(0, take);
      const atLeast = skip + found.length;
      const isEnd = found.length <= take;
      if (isEnd && (skip === 0 || found.length > 0)) return { rows, total: atLeast, isEstimate: false };
      const count = countText(filter);
      const [counted] = await listSql<{ count: number }>(count.text, [0, mostCounted + 1, ...count.values]);
      const total = counted?.count ?? 0;
      if (total <= mostCounted)
        return { rows, total: isEnd ? total : Math.max(total, atLeast), isEstimate: false };
      const estimated = await estimate(filter);
      return {
        rows,
        total: isEnd ? Math.min(estimated, skip) : Math.max(estimated, atLeast),
        isEstimate: true,
      };
    },
    find: (id) => findDelivery(sql, id),
    async dataOf(eventId) {
      return (await sql<{ data: string }>(dataText, [[eventId]]))[0]?.data;
    },
    async attemptsOf(id) {
      return sql<AttemptRow & Record<string, unknown>>(attemptsText, [id]);
    },
    async retry({ id, limit, transaction }) {
      const act = async (inTransaction: Sql): Promise<RetryAnswer> => {
        await keepFromPruning(inTransaction);
        await inTransaction(lockChainText, [id]);
        const traceparent = tracing.current()?.traceparent ?? null;
        const [row] = await inTransaction<RetriedRow>(retryText, [id, limit, randomUUID(), traceparent]);
        if (row === undefined) return refused("This delivery was deleted.");
        const { id: madeId, statusBefore, urlNow } = row;
        if (madeId !== null) return { kind: "created", delivery: await getDelivery(inTransaction, madeId) };
        if (statusBefore !== "failed")
          return refused(`Only a failed delivery can be retried; this one is ${statusBefore}.`);
        if (urlNow === null) return refused("The subscription of this delivery was deleted.");
        return refused(`The manual retry limit of ${limit} for this delivery has been reached.`);
      };
      return transaction === undefined ? transact(act) : act(transaction);
    },
  };
}

async function findDelivery(sql: Sql, id: string): Promise<DeliveryRow | undefined> {
  const [delivery] = await sql<DeliveryRow & Record<string, unknown>>(findText, [id]);
  return delivery;
}

async function getDelivery(sql: Sql, id: string): Promise<DeliveryRow> {
  const delivery = await findDelivery(sql, id);
  if (delivery === undefined) throw new Error(`There is no delivery ${id}.`);
  return delivery;
}

function refused(reason: string): RetryAnswer {
  return { kind: "refused", reason };
}
