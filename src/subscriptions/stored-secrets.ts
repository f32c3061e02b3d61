import type { Actor } from "../kit/actor.ts";
import { actingCte, actorText } from "../db/audit.ts";
import type { Sql } from "../db/sql.ts";
import { messageOf, OperatorError } from "../kit/errors.ts";
import { headBytes, keyIdOf, mintSecret, secretHint, type SecretBox } from "./secret.ts";

interface StoredSecret {
  /** Id of the subscription. */
  readonly id: number;
  readonly userId: number;
  readonly url: string;
  readonly sealed: Uint8Array;
}

/** A stored secret that no key decrypts. */
export interface UnreadableSecret extends StoredSecret {
  readonly reason: string;
}

/** Result of a rotation; each secret is counted once. */
export interface Reencryption {
  readonly reencrypted: number;
  /** Secrets that had the current key already. */
  readonly current: number;
  /** Ordered by id; they are unchanged. */
  readonly unreadable: readonly UnreadableSecret[];
}

const head = `substring(encrypted_secret FROM 1 FOR ${headBytes})`;

const countByHeadText = `
  SELECT encode(${head}, 'hex') AS head, count(*)::int AS count, (array_agg(id ORDER BY id))[1:10] AS ids
  FROM svc.subscriptions
  GROUP BY 1
  ORDER BY 1`;

const findOthersText = `
  SELECT id, user_id AS "userId", url, encrypted_secret AS sealed
  FROM svc.subscriptions
  WHERE id > $1 AND ${head} <> decode($2, 'hex')
  ORDER BY id
  LIMIT $3`;

// Replaces only what was read, so that a second run, or a dispatcher, never sees a half-done
// change.
const replaceText = `
  WITH ${actingCte("$5")}
  UPDATE svc.subscriptions AS subscription
  SET encrypted_secret = given.fresh, secret_hint = coalesce(given.hint, secret_hint)
  FROM acting, unnest($1::int[], $2::bytea[], $3::bytea[], $4::text[]) AS given (id, stale, fresh, hint)
  WHERE subscription.id = given.id AND subscription.encrypted_secret = given.stale
  RETURNING subscription.id`;

/**
 * Throws when a stored secret was encrypted with a key that is missing. Its deliveries could not be
 * signed, and new secrets would need another key. Scans the subscriptions once; does not look for
 * damaged bytes.
 *
 * @throws OperatorError that names the missing key and says what to do.
 */
export async function refuseUnknownKeys({
  sql,
  secretBox,
}: {
  readonly sql: Sql;
  readonly secretBox: Pick<SecretBox, "currentHead" | "knownHeads">;
}): Promise<void> {
  const counts = await sql<{ head: string; count: number; ids: number[] }>(countByHeadText);
  const unknown = counts.filter((row) => !secretBox.knownHeads.has(row.head));
  if (unknown.length === 0) return;
  const total = counts.reduce((sum, { count }) => sum + count, 0);
  const lines = unknown.map(({ head: sealedHead, count, ids }) => {
    const more = count > ids.length ? ` and ${count - ids.length} more` : "";
    return `  - ${count} of ${total}: key id ${keyIdOf(sealedHead)}, subscriptions ${ids.join(", ")}${more}`;
  });
  throw new OperatorError(
    `Webhook secrets in the database are encrypted with a key that was not given:\n${lines.join("\n")}\n` +
      `The secret key (SVC_SECRET_KEY, or secret.key in the data folder) has the id ${keyIdOf(secretBox.currentHead)}. Give the right one; or, after a change of the key, give the ` +
      "one before in SVC_PREVIOUS_SECRET_KEYS until `svc-admin secret-key rotate` is through. If the key is lost for good, " +
      "`svc-admin secret-key rotate --replace-unreadable` makes new secrets.",
  );
}

/**
 * Encrypts with the current key every stored secret that has another key. Works in batches by id,
 * each in its own transaction. It can be stopped at any time, run again, and run beside the
 * service.
 *
 * @param actor For the audit trail, which gets a row per batch.
 * @param onProgress Called after each batch with the number of secrets done so far.
 */
export async function reencryptSecrets({
  sql,
  secretBox,
  batchSize,
  onProgress,
  actor,
}: {
  readonly sql: Sql;
  readonly secretBox: SecretBox;
  readonly actor: Actor;
  readonly batchSize: number;
  readonly onProgress: (progress: { readonly reencrypted: number; readonly of: number }) => void;
}): Promise<Reencryption> {
  const counts = await sql<{ head: string; count: number }>(countByHeadText);
  const current = counts.find((row) => row.head === secretBox.currentHead)?.count ?? 0;
  const of = counts.reduce((sum, { count }) => sum + count, 0) - current;
  const unreadable: UnreadableSecret[] = [];
  let reencrypted = 0;
  for (let after = 0; ;) {
    const batch = await sql<StoredSecret>(findOthersText, [after, secretBox.currentHead, batchSize]);
    const last = batch.at(-1);
    if (last === undefined) return { reencrypted, current, unreadable };
    after = last.id;
    const fresh = batch.flatMap((stored) => {
      try {
        return { ...stored, fresh: secretBox.encrypt(secretBox.decrypt(stored.sealed)) };
      } catch (error) {
        unreadable.push({ ...stored, reason: messageOf(error) });
        return [];
      }
    });
    reencrypted += (await replace({ sql, secrets: fresh, actor })).size;
    onProgress({ reencrypted, of });
  }
}

/**
 * Creates a new signing secret for every subscription whose stored one cannot be decrypted, in one
 * statement.
 *
 * @returns The new secrets in clear text, for the only time. Leaves out secrets that have changed
 *   since.
 */
export async function replaceUnreadable({
  sql,
  secretBox,
  unreadable,
  actor,
}: {
  readonly sql: Sql;
  /** Recorded in the audit trail. */
  readonly actor: Actor;
  readonly secretBox: Pick<SecretBox, "encrypt">;
  readonly unreadable: readonly UnreadableSecret[];
}): Promise<readonly (StoredSecret & { readonly secret: string })[]> {
  const minted = unreadable.map((stored) => {
    const secret = mintSecret();
    return { ...stored, secret, fresh: secretBox.encrypt(secret), hint: secretHint(secret) };
  });
  const replaced = await replace({ sql, secrets: minted, actor });
  return minted.filter(({ id }) => replaced.has(id));
}

/** Returns the ids of the secrets that were replaced. */
async function replace({
  sql,
  secrets,
  actor,
}: {
  readonly sql: Sql;
  readonly secrets: readonly (StoredSecret & { readonly fresh: Uint8Array; readonly hint?: string })[];
  readonly actor: Actor;
}): Promise<ReadonlySet<number>> {
  const rows = await sql<{ id: number }>(replaceText, [
    secrets.map(({ id }) => id),
    secrets.map(({ sealed }) => sealed),
    secrets.map(({ fresh }) => fresh),
    secrets.map(({ hint }) => hint ?? null),
    actorText(actor),
  ]);
  return new Set(rows.map(({ id }) => id));
}
