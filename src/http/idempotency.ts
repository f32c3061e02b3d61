import { createHash } from "node:crypto";
import type { Sql } from "../db/sql.ts";
import type { InTransaction, Transaction } from "../db/transaction.ts";
import { setBounded } from "../kit/bounded-map.ts";
import { AppError } from "../kit/errors.ts";
import { send, type Answer } from "./answer.ts";
import { memoryPerAnsweredByte } from "./error-body.ts";
import {
  inProgressStatus,
  findAnswer,
  forgetKey,
  keepAnswer,
  keptForHours,
  markInProgress,
  readBody,
  takeKey,
  usageOf,
  type KeptAnswer,
  type KeyOfUser,
  type Usage,
} from "./idempotency-keys.ts";
import type { ApiContext } from "./state.ts";

/** Encryption of kept answers that show a secret. */
export interface Seal {
  encrypt(text: string): Uint8Array;
  decrypt(sealed: Uint8Array): string;
}

/**
 * The action of a POST. With a transaction, every statement uses it: another connection would wait
 * for it on the embedded database, and may not be available elsewhere.
 */
type Act = (transaction: Transaction | undefined) => Promise<Answer>;

/**
 * A POST whose body has been read, with its action. `prepare` returns the action after reads that
 * use other connections. A request with a kept answer is neither prepared nor checked again.
 */
export type Post = PostSettings & ({ readonly act: Act } | { readonly prepare: () => Promise<Act> });

interface PostSettings {
  /** Runs the write. Default: the transactions of `createAnswerPost`. */
  readonly inTransaction?: InTransaction;
  /** Whether the answer shows a secret. It is then kept encrypted, like the secret. */
  readonly isSecret?: boolean;
  /** Further input of the answer, in addition to method, path and body. */
  readonly dependsOn?: string;
  /**
   * Time limit of an action that waits for others, and that has nothing to commit with its answer.
   * Such an action gets no transaction, and holds the key for this time.
   */
  readonly longestMs?: number;
}

/**
 * Answers a POST whose body has been read. With an `Idempotency-Key`, the write and the kept answer
 * are one transaction. The same request then gets the same answer for 24 h
 * (draft-ietf-httpapi-idempotency-key-header). A refused request leaves no trace, so it may be sent
 * again, or corrected, under its key.
 *
 * @throws AppError `idempotency.in_progress`, `idempotency.mismatch`, `idempotency.exhausted`,
 *   `request.malformed`; `server.overloaded` when there is no memory for the kept answer.
 */
export type AnswerPost = (ctx: ApiContext, post: Post) => Promise<void>;

/** Dependencies of the routes with a POST. */
export interface PostOptions {
  readonly answerPost: AnswerPost;
}

/** Limits of one user. 100,000 keys in 24 h are 69 requests a minute. */
export const keyLimits = {
  keys: 100_000,
  bytes: 256 * 1024 * 1024,
  /** Limit of one answer; larger ones are refused before the commit. */
  bytesOfAnswer: 16 * 1024 * 1024,
};

/** Time for which the count of a user's keys is cached, and the limit of cached users. */
const countedForMs = 60_000;
const mostCounted = 10_000;

/** @param now Monotonic clock, in ms. */
export function createAnswerPost(
  seal: Seal,
  ofAll: InTransaction,
  now: () => number = () => performance.now(),
): AnswerPost {
  const refuseOneTooMany = createBound(now);

  return async (ctx, post) => {
    const given = ctx.req.headers["idempotency-key"];
    if (typeof given !== "string") return send(ctx, await (await actOf(post))(undefined));
    const key = keyOf(ctx, given);
    const requestHash = requestHashOf(ctx, post.dependsOn ?? "");
    const steps: KeySteps = {
      async begin(sql) {
        if (!(await takeKey(sql, key))) throw inProgress();
        const kept = await findAnswer(sql, key);
        if (kept !== undefined) {
          refuseOther(kept, requestHash);
          const { status, headers, bytes, isSealed } = kept;
          // Unlike the first answer, this one may be refused, because nothing is written now.
          ctx.state.memory.settle(bytes * memoryPerAnsweredByte);
          const body = await readBody(sql, key);
          const json = isSealed ? seal.decrypt(body) : body.toString();
          return { answer: { status, headers, json }, isReplayed: true };
        }
        return { note: await refuseOneTooMany(sql, key.userId) };
      },
      async keep(sql, { status, headers, json }, note) {
        const isSealed = post.isSecret === true;
        const body = Buffer.from(isSealed ? seal.encrypt(json) : json);
        refuseTooLarge(body.length);
        await keepAnswer(sql, key, { requestHash, status, headers, body, isSealed });
        note(body.length);
      },
      mark: (sql, forMs) => markInProgress(sql, key, { requestHash, forMs }),
      forget: (sql) => forgetKey(sql, key),
    };
    const { answer, isReplayed } = await answered({ inTransaction: ofAll, ...post }, steps);
    if (isReplayed) ctx.set("Idempotent-Replayed", "true");
    send(ctx, answer);
  };
}

/** The operations on the key of a request. */
interface KeySteps {
  /**
   * Locks the key, and looks for its answer. Without an answer, returns a function that counts the
   * first one.
   */
  readonly begin: (sql: Sql) => Promise<Answered | { readonly note: (bytes: number) => void }>;
  readonly keep: (sql: Sql, answer: Answer, note: (bytes: number) => void) => Promise<void>;
  /** Marks the request as running. */
  readonly mark: (sql: Sql, forMs: number) => Promise<void>;
  readonly forget: (sql: Sql) => Promise<void>;
}

interface Answered {
  readonly answer: Answer;
  readonly isReplayed: boolean;
}

function actOf(post: Post): Act | Promise<Act> {
  return "act" in post ? post.act : post.prepare();
}

/** Returns the kept answer, or performs the action and keeps its answer. */
async function answered(
  post: Post & { readonly inTransaction: InTransaction },
  steps: KeySteps,
): Promise<Answered> {
  const { inTransaction, longestMs } = post;
  if ("prepare" in post) {
    const begun = await inTransaction(({ sql }) => steps.begin(sql));
    if ("answer" in begun) return begun;
  }
  const act = await actOf(post);
  return longestMs === undefined
    ? actInTransaction(inTransaction, act, steps)
    : actBetweenTransactions(inTransaction, act, { ...steps, longestMs });
}

async function actInTransaction(
  inTransaction: InTransaction,
  act: Act,
  { begin, keep }: KeySteps,
): Promise<Answered> {
  return inTransaction(async (transaction) => {
    const { sql } = transaction;
    const begun = await begin(sql);
    if ("answer" in begun) return begun;
    const answer = await act(transaction);
    await keep(sql, answer, begun.note);
    return { answer, isReplayed: false };
  });
}

/**
 * Performs the action between two transactions: one reserves the key for a while, the other keeps
 * the answer.
 */
async function actBetweenTransactions(
  inTransaction: InTransaction,
  act: Act,
  { begin, keep, mark, forget, longestMs }: KeySteps & { readonly longestMs: number },
): Promise<Answered> {
  const begun = await inTransaction(async ({ sql }) => {
    const first = await begin(sql);
    if (!("answer" in first)) await mark(sql, longestMs);
    return first;
  });
  if ("answer" in begun) return begun;
  try {
    const answer = await act(undefined);
    await inTransaction(({ sql }) => keep(sql, answer, begun.note));
    return { answer, isReplayed: false };
  } catch (error) {
    // If this fails, the key becomes free when its time is up.
    await inTransaction(({ sql }) => forget(sql)).catch(() => undefined);
    throw error;
  }
}

function keyOf(ctx: ApiContext, given: string): KeyOfUser {
  if (!/^[!-~]{1,255}$/.test(given))
    throw new AppError(
      "request.malformed",
      "The Idempotency-Key header must be of 1 to 255 visible ASCII characters, such as a UUID.",
    );
  return { userId: ctx.state.caller.id, keyHash: createHash("sha256").update(given).digest() };
}

/**
 * Hashes the request with the bytes of its body, because a retry sends the same bytes. A slash at
 * the end of the path makes no other request. A limited token must not get the answer to one with
 * all rights of an admin.
 */
function requestHashOf({ method, path, request, state }: ApiContext, dependsOn: string): Buffer {
  const { rawBody = "" } = request as { readonly rawBody?: string };
  const rights = state.caller.isLimited === true ? "limited" : "";
  const head = `${method} ${path.replace(/\/$/, "")}\n${dependsOn}${rights}`;
  return createHash("sha256").update(head).update(rawBody).digest();
}

/** Refuses a request that differs from the answered one, or whose answer is still being made. */
function refuseOther({ requestHash, status }: KeptAnswer, given: Buffer): void {
  if (!requestHash.equals(given)) {
    const message =
      "This Idempotency-Key was used for another request. Take a new key for each request, and the same one only to send it again.";
    throw new AppError("idempotency.mismatch", message, { errors: { "Idempotency-Key": [message] } });
  }
  if (status === inProgressStatus) throw inProgress();
}

function inProgress(): AppError {
  return new AppError(
    "idempotency.in_progress",
    "A request with this Idempotency-Key is still being processed. Repeat it in a second, with the same key, to get its answer.",
    { headers: { "Retry-After": "1" } },
  );
}

function refuseTooLarge(bytes: number): void {
  if (bytes <= keyLimits.bytesOfAnswer) return;
  throw new AppError(
    "record.too_large",
    `The answer would have ${bytes} bytes; one that is kept for its Idempotency-Key may have at most ${keyLimits.bytesOfAnswer}. ` +
      "Nothing was written. Send less, or send it without the header.",
  );
}

/**
 * Limits the kept answers of each user. Counts in the database once a minute, and adds the answers
 * that this process keeps in between. A count for each request would take up to 20 ms.
 */
function createBound(now: () => number): (sql: Sql, userId: number) => Promise<(bytes: number) => void> {
  const counted = new Map<number, Usage & { readonly atMs: number }>();
  return async (sql, userId) => {
    let usage = counted.get(userId);
    if (usage === undefined || now() - usage.atMs >= countedForMs) {
      usage = { ...(await usageOf(sql, userId)), atMs: now() };
      setBounded(counted, [userId, usage], mostCounted);
    }
    if (usage.keys >= keyLimits.keys || usage.bytes >= keyLimits.bytes)
      throw new AppError(
        "idempotency.exhausted",
        `${usage.keys} answers with ${usage.bytes} bytes are kept for you, of at most ${keyLimits.keys} with ${keyLimits.bytes} bytes. ` +
          `Each is kept for ${keptForHours} h: send this request without Idempotency-Key, or later.`,
      );
    return (bytes) => {
      const { keys, bytes: before, atMs } = counted.get(userId) ?? { keys: 0, bytes: 0, atMs: now() };
      counted.set(userId, { keys: keys + 1, bytes: before + bytes, atMs });
    };
  };
}
