import { randomUUID } from "node:crypto";
import { setBounded } from "../kit/bounded-map.ts";
import type { Sql } from "../db/sql.ts";
import type { SealedSigning, Signing } from "../subscriptions/signing.ts";
import { deliveryBody } from "./attempt/body.ts";
import type { Sender } from "./attempt/send.ts";
import { signedHeaders } from "./attempt/sign.ts";
import type { AttemptResult } from "./delivery.ts";

/** What became of a test: an attempt, or why none was made. */
export type TestAnswer =
  | { readonly kind: "made"; readonly uuid: string; readonly result: AttemptResult }
  /** One was made a moment ago, or too many are being made. */
  | { readonly kind: "tooMany"; readonly retryAfterSeconds: number }
  /** The connections of this process, or the name look-ups of the user, were all in use. */
  | { readonly kind: "unmade"; readonly reason: string }
  | { readonly kind: "unknown" };

/** Sends pings to the receivers of subscriptions, which count nowhere. */
export interface TestDeliveries {
  /** Makes one attempt, whatever the state of the subscription. */
  send(subscriptionId: number): Promise<TestAnswer>;
}

const gapMs = 1_000;
/** Pings in flight of one user, and of all users. */
const mostOfUser = 2;
const mostOfAll = 16;
const mostRemembered = 10_000;

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

export function createTestDeliveries({
  sql,
  send,
  openSigning,
  now,
}: {
  readonly sql: Sql;
  readonly send: Sender["send"];
  readonly openSigning: (sealed: SealedSigning) => Signing;
  /** In ms, never going back. */
  readonly now: () => number;
}): TestDeliveries {
  const sentAtMs = new Map<number, number>();
  const inFlight = new Map<number, number>();
  let count = 0;
  return {
    async send(subscriptionId) {
      const [target] = await sql<Target & Record<string, unknown>>(findText, [subscriptionId]);
      if (target === undefined) return { kind: "unknown" };
      const { userId } = target;
      const own = inFlight.get(userId) ?? 0;
      const isSoon = now() - (sentAtMs.get(subscriptionId) ?? -Infinity) < gapMs;
      if (isSoon || own >= mostOfUser || count >= mostOfAll) return { kind: "tooMany", retryAfterSeconds: 1 };
      setBounded(sentAtMs, [subscriptionId, now()], mostRemembered);
      inFlight.set(userId, own + 1);
      count += 1;
      try {
        return await ping(target, send, openSigning);
      } finally {
        count -= 1;
        const left = (inFlight.get(userId) ?? 1) - 1;
        if (left === 0) inFlight.delete(userId);
        else inFlight.set(userId, left);
      }
    },
  };
}

async function ping(
  target: Target,
  send: Sender["send"],
  openSigning: (sealed: SealedSigning) => Signing,
): Promise<TestAnswer> {
  const { url, resource, userId, isAdmin } = target;
  const [uuid, eventUuid] = [randomUUID(), randomUUID()];
  const sentAt = new Date();
  const timestamp = sentAt.toISOString().replace("Z", "000Z");
  const data = Buffer.from("{}");
  const body = deliveryBody({ event: "ping", resource, eventUuid, deliveryUuid: uuid, data, timestamp });
  const signing = openSigning(target);
  const headers = signedHeaders({ signing, body, eventUuid, deliveryUuid: uuid, sentAt });
  const sent = await send({ url, headers, body }, { id: userId, isAdmin });
  return sent.kind === "made" ? { kind: "made", uuid, result: sent.result } : sent;
}
