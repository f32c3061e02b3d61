import type { Sql } from "../db/sql.ts";
import { createPeriodicWorker, type Worker } from "../kit/worker.ts";
import { messageOf } from "../kit/errors.ts";
import type { Log } from "../telemetry/log.ts";

/** A key of a user: the SHA-256 hash (32 bytes) of the text in the header. */
export interface KeyOfUser {
  readonly userId: number;
  readonly keyHash: Buffer;
}

/** The first answer to a request with a key, without its body. */
export interface KeptAnswer {
  /** SHA-256 of the request. */
  readonly requestHash: Buffer;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Size of the body; at most 16 MB. */
  readonly bytes: number;
  /** Whether the body is encrypted, because it contains a secret. */
  readonly isSealed: boolean;
}

/** Number of a user's kept answers, and the bytes of their bodies. */
export interface Usage {
  readonly keys: number;
  readonly bytes: number;
}

/** Hours for which the first answer to a key is kept. */
export const keptForHours = 24;

/** The status of a key whose first request is not answered yet. */
export const inProgressStatus = 0;

/**
 * Locks a key until the transaction ends. Returns false at once when another request has it.
 *
 * Uses an advisory lock: on the unique index, a second request would wait for the first one and
 * hold a connection meanwhile. The lock ends with its transaction, also when the process dies, and
 * works behind PgBouncer's transaction pooling.
 */
export async function takeKey(sql: Sql, { userId, keyHash }: KeyOfUser): Promise<boolean> {
  // Uses 8 bytes of the hash: two keys that share them get a 409, which a retry resolves.
  const lock = keyHash.readBigInt64BE() ^ BigInt(userId);
  const [row] = await sql<{ isTaken: boolean }>('SELECT pg_try_advisory_xact_lock($1::bigint) AS "isTaken"', [
    String(lock),
  ]);
  return row?.isTaken === true;
}

const findText = `
  SELECT request_hash AS "requestHash", status, headers, bytes, is_sealed AS "isSealed"
  FROM svc.idempotency_keys WHERE user_id = $1 AND key_hash = $2 AND expires_at > now()`;

/** Returns undefined when the key has no answer, or an expired one. */
export async function findAnswer(sql: Sql, { userId, keyHash }: KeyOfUser): Promise<KeptAnswer | undefined> {
  const [kept] = await sql<KeptAnswer>(findText, [userId, keyHash]);
  return kept;
}

/** Reads the body of an answer that `findAnswer` has found in this transaction. */
export async function readBody(sql: Sql, { userId, keyHash }: KeyOfUser): Promise<Buffer> {
  const [{ body } = { body: Buffer.alloc(0) }] = await sql<{ readonly body: Buffer }>(
    "SELECT body FROM svc.idempotency_keys WHERE user_id = $1 AND key_hash = $2",
    [userId, keyHash],
  );
  return body;
}

// The key was looked up before. Only an expired answer, or the mark of this request, can conflict.
const keepText = `
  INSERT INTO svc.idempotency_keys AS kept (user_id, key_hash, request_hash, status, headers, body, bytes, is_sealed, expires_at)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, now() + $9 * interval '1 millisecond')
  ON CONFLICT (user_id, key_hash) DO UPDATE SET
    request_hash = excluded.request_hash, status = excluded.status, headers = excluded.headers, body = excluded.body,
    bytes = excluded.bytes, is_sealed = excluded.is_sealed, created_at = now(), expires_at = excluded.expires_at`;

/** Stores an answer, for 24 h by default. */
export async function keepAnswer(
  sql: Sql,
  { userId, keyHash }: KeyOfUser,
  { requestHash, status, headers, body, isSealed }: Omit<KeptAnswer, "bytes"> & { readonly body: Buffer },
  forMs = keptForHours * 3_600_000,
): Promise<void> {
  const values = [userId, keyHash, requestHash, status, JSON.stringify(headers), body, body.length, isSealed];
  await sql(keepText, [...values, forMs]);
}

/** Marks a key whose request runs outside of a transaction. */
export async function markInProgress(
  sql: Sql,
  key: KeyOfUser,
  { requestHash, forMs }: { readonly requestHash: Buffer; readonly forMs: number },
): Promise<void> {
  const mark = { requestHash, status: inProgressStatus, headers: {}, body: Buffer.alloc(0), isSealed: false };
  await keepAnswer(sql, key, mark, forMs);
}

/** Removes the mark of a request that was not answered. */
export async function forgetKey(sql: Sql, { userId, keyHash }: KeyOfUser): Promise<void> {
  await sql("DELETE FROM svc.idempotency_keys WHERE user_id = $1 AND key_hash = $2 AND status = $3", [
    userId,
    keyHash,
    inProgressStatus,
  ]);
}

/** Counts the kept answers of a user through an index alone: 100,000 answers take about 20 ms. */
export async function usageOf(sql: Sql, userId: number): Promise<Usage> {
  const [usage] = await sql<{ keys: number; bytes: string }>(
    "SELECT count(*)::int AS keys, coalesce(sum(bytes), 0)::text AS bytes FROM svc.idempotency_keys WHERE user_id = $1",
    [userId],
  );
  return { keys: usage?.keys ?? 0, bytes: Number(usage?.bytes ?? 0) };
}

/** Limit of the answers that one statement deletes, because an answer may have 15 MB. */
const portion = 100;

/**
 * Deletes a portion of the expired answers, and returns their number. Two concurrent calls take
 * different answers.
 */
export async function deleteExpired(sql: Sql): Promise<number> {
  const [deleted] = await sql<{ count: number }>(`
    WITH gone AS (
      DELETE FROM svc.idempotency_keys WHERE ctid = ANY(ARRAY(
        SELECT ctid FROM svc.idempotency_keys WHERE expires_at < now() ORDER BY expires_at LIMIT ${portion}
        FOR UPDATE SKIP LOCKED))
      RETURNING 1
    )
    SELECT count(*)::int AS count FROM gone`);
  return deleted?.count ?? 0;
}

const intervalMs = 60_000;

/** Deletes expired answers every minute, in portions. */
export function createExpiry({ sql, log }: { readonly sql: Sql; readonly log: Log }): Worker {
  return createPeriodicWorker({
    name: "idempotency",
    intervalMs,
    async turn(signal) {
      while (!signal.aborted && (await deleteExpired(sql)) === portion);
    },
    onError: (error) => log.warn({ reason: messageOf(error) }, "expired answers were not deleted"),
  });
}
