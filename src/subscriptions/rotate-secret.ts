import type { Actor } from "../kit/actor.ts";
import { actingCte, actorText } from "../db/audit.ts";
import type { Sql } from "../db/sql.ts";
import { mintSecret, secretHint, type SecretBox } from "./secret.ts";
import { openPrevious, sealPrevious, type PreviousSecret } from "./signing.ts";
import type { OwnerScope } from "./own-subscriptions.ts";

/** Longest time in seconds for which a secret signs beside the one that has replaced it: 7 days. */
export const longestGrace = 604_800;
/** Default grace period, in seconds: a day. */
export const usualGrace = 86_400;

const readText = `
  SELECT user_id AS "userId", encrypted_secret AS sealed, encrypted_previous AS previous, secret_hint AS hint,
    (extract(epoch FROM now()) * 1000)::float8 AS "nowMs"
  FROM svc.subscriptions WHERE id = $1 FOR NO KEY UPDATE`;

const writeText = `
  WITH ${actingCte("$6")}
  UPDATE svc.subscriptions
  SET encrypted_secret = $2, secret_hint = $3, encrypted_previous = $4, previous_until = $5, updated_at = now()
  FROM acting WHERE id = $1`;

interface Stored {
  readonly userId: number;
  readonly sealed: Uint8Array;
  readonly previous: Uint8Array | null;
  readonly hint: string;
  readonly nowMs: number;
}

/**
 * Gives a subscription a new secret, in the caller's transaction. The previous secret signs beside
 * it until the grace period is over, and so do earlier ones. Without a grace period, no old secret
 * signs, because others may know them.
 *
 * @returns The new secret in clear text, for the only time. Undefined when there is no such
 *   subscription.
 */
export async function rotateSecret(
  sql: Sql,
  {
    id,
    owner,
    graceSeconds,
    secretBox,
    actor,
  }: {
    readonly id: number;
    readonly owner: OwnerScope;
    readonly graceSeconds: number;
    readonly secretBox: Pick<SecretBox, "encrypt" | "decrypt">;
    readonly actor: Actor;
  },
): Promise<string | undefined> {
  const [stored] = await sql<Stored>(readText, [id]);
  if (stored === undefined || (owner !== "everybody" && stored.userId !== owner)) return undefined;
  const secret = mintWithNewHint(stored.hint);
  const { nowMs } = stored;
  const previous = graceSeconds === 0 ? [] : previousOf(stored, secretBox, nowMs + graceSeconds * 1000);
  const kept = sealPrevious(secretBox, previous, nowMs);
  const sealed = secretBox.encrypt(secret);
  const values = [id, sealed, secretHint(secret), kept?.sealed ?? null, kept?.until ?? null];
  await sql(writeText, [...values, actorText(actor)]);
  return secret;
}

function previousOf(
  { sealed, previous }: Stored,
  secretBox: Pick<SecretBox, "decrypt">,
  untilMs: number,
): readonly PreviousSecret[] {
  const before = previous === null ? [] : openPrevious(secretBox, previous);
  return [{ secret: secretBox.decrypt(sealed), untilMs }, ...before];
}

/**
 * Creates a secret with a different hint. The audit trail recognises a new secret by its hint,
 * which a change of the key does not alter.
 */
function mintWithNewHint(hint: string): string {
  for (;;) {
    const secret = mintSecret();
    if (secretHint(secret) !== hint) return secret;
  }
}
