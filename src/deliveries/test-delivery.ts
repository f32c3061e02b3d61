import { randomUUID } from "node:crypto";
import type { Sql, Transact } from "../db/sql.ts";
import type { SecretBox } from "../subscriptions/secret.ts";
import { openSigning, type SealedSigning } from "../subscriptions/signing.ts";
import { flightMsOf } from "./attempt/attempts.ts";
import { deliveryBody } from "./attempt/body.ts";
import type { Sender } from "./attempt/send.ts";
import { signedHeaders } from "./attempt/sign.ts";
import type { AttemptResult } from "./delivery.ts";

/** The outcome of a test delivery: an attempt, or why there was none. */
export type TestAnswer =
  | { readonly kind: "made"; readonly uuid: string; readonly result: AttemptResult }
  /** A test was made a moment ago, or too many are under way. The reason is a text for people. */
  | { readonly kind: "tooMany"; readonly reason: string; readonly retryAfterSeconds: number }
  /** No connection or name look-up was free, or the user rests after a costly handshake. */
  | { readonly kind: "unmade"; readonly reason: string }
  | { readonly kind: "unknown" };

/**
 * Sends a ping to the receiver of a subscription: one attempt, in any state of the subscription.
 * Pings count in no statistics.
 */
export type TestWebhook = (subscriptionId: number) => Promise<TestAnswer>;

const gapMs = 1_000;
/** Most pings in flight: of one user over all processes, and of all users in this process. */
const mostOfUser = 2;
const mostOfAll = 64;

interface Target extends SealedSigning {
  readonly url: string;
  readonly resource: string;
  readonly userId: number;
  readonly isAdmin: boolean;
}

const findText = `
  SELECT url, resource, encrypted_secret AS "encryptedSecret", encrypted_headers AS "encryptedHeaders",
    CASE WHEN previous_until > now() THEN encrypted_previous END AS "encryptedPrevious",
    user_id AS "userId", is_admin AS "isAdmin"
  FROM svc.subscriptions AS subscription JOIN svc.users AS subscriber ON subscriber.id = subscription.user_id
  WHERE subscription.id = $1`;

// With this lock, the next statement sees the rows of earlier tests.
const lockText = "SELECT FROM svc.users WHERE id = $1 FOR NO KEY UPDATE";

// A test that starts in the future dates from before the database's clock was set back. It is
// deleted, so that the next try succeeds.
const beginText = `
  WITH over AS (
    DELETE FROM svc.tests WHERE user_id = $3 AND (ends_at < now() - interval '1 minute' OR started_at > now() + interval '1 minute')
  )
  INSERT INTO svc.tests (id, subscription_id, user_id, ends_at)
  SELECT $1::uuid, $2::int, $3::int, now() + $4 * interval '1 millisecond'
  WHERE (SELECT count(*) FROM svc.tests WHERE user_id = $3 AND ends_at > now()) < ${mostOfUser}
    AND NOT EXISTS (
      SELECT FROM svc.tests WHERE user_id = $3 AND subscription_id = $2 AND started_at > now() - interval '${gapMs} milliseconds')
  RETURNING 1`;

// Compares with the time of the transaction, as `beginText` does.
const underWayText = `
  SELECT count(*)::int AS count, ceil(extract(epoch FROM min(ends_at) - now()))::int AS seconds
  FROM svc.tests WHERE user_id = $1 AND ends_at > now()`;

const endText = "UPDATE svc.tests SET ends_at = now() WHERE id = $1";

/**
 * Creates the sender of pings. The limits of a webhook and of a user hold over all processes, by
 * rows of `svc.tests`: a user whose receivers hang has two tests at a time. `mostOfAll` bounds the
 * connections of this process.
 */
export function createTestWebhook({
  sql,
  transact,
  send,
  secretBox,
  timeoutMs,
}: {
  readonly sql: Sql;
  readonly transact: Transact;
  readonly send: Sender["send"];
  readonly secretBox: Pick<SecretBox, "decrypt">;
  /** Limit of an attempt. */
  readonly timeoutMs: number;
}): TestWebhook {
  let count = 0;
  return async (subscriptionId) => {
    const [target] = await sql<Target>(findText, [subscriptionId]);
    if (target === undefined) return { kind: "unknown" };
    if (count >= mostOfAll) return tooMany("Too many webhooks are being tested.", 1);
    const id = randomUUID();
    count += 1;
    try {
      const begun = await transact(async (own) => {
        await own(lockText, [target.userId]);
        const values = [id, subscriptionId, target.userId, flightMsOf(timeoutMs)];
        return (await own(beginText, values)).length > 0 || refusal(own, target.userId);
      });
      if (begun !== true) return begun;
      try {
        return await ping(target, send, secretBox);
      } finally {
        // If this fails, the row ends at its `ends_at`.
        await sql(endText, [id]).catch(() => undefined);
      }
    } finally {
      count -= 1;
    }
  };
}

/** Returns the reason why no test was begun. */
async function refusal(sql: Sql, userId: number): Promise<TestAnswer> {
  const [underWay] = await sql<{ count: number; seconds: number }>(underWayText, [userId]);
  if (underWay === undefined || underWay.count < mostOfUser)
    return tooMany("A webhook is tested at most once a second.", 1);
  return tooMany(
    `A user has at most ${mostOfUser} tests at a time, and so many are still going on.`,
    underWay.seconds,
  );
}

function tooMany(why: string, retryAfterSeconds: number): TestAnswer {
  const wait = retryAfterSeconds === 1 ? "1 second" : `${retryAfterSeconds} seconds`;
  return { kind: "tooMany", reason: `${why} Try again in ${wait}.`, retryAfterSeconds };
}

async function ping(
  target: Target,
  send: Sender["send"],
  secretBox: Pick<SecretBox, "decrypt">,
): Promise<TestAnswer> {
  const { url, resource, userId, isAdmin } = target;
  const [uuid, eventUuid] = [randomUUID(), randomUUID()];
  const sentAt = new Date();
  const timestamp = sentAt.toISOString().replace("Z", "000Z");
  const data = Buffer.from("{}");
  const body = deliveryBody({ event: "ping", resource, eventUuid, uuid, data, timestamp });
  const signing = openSigning(secretBox, target, sentAt.getTime());
  const headers = signedHeaders({ signing, body, eventUuid, uuid, sentAt });
  const sent = await send({ url, headers, body }, { id: userId, isAdmin });
  return sent.kind === "made" ? { kind: "made", uuid, result: sent.result } : sent;
}
