import type { Actor } from "../kit/actor.ts";
import { actingCte, actorText } from "../db/audit.ts";
import { arraysOf, type Sql } from "../db/sql.ts";
import { messageOf, OperatorError } from "../kit/errors.ts";
import { headBytes, keyIdOf, mintSecret, secretHint, type SecretBox } from "./secret.ts";

/** The encrypted parts of a subscription: its secret, earlier secrets and its headers. */
interface StoredSecret {
  readonly id: number;
  readonly userId: number;
  readonly url: string;
  readonly sealed: Uint8Array;
  readonly previous: Uint8Array | null;
  readonly headers: Uint8Array | null;
  readonly headerNames: readonly string[];
}

/** A stored secret with a part that no known key decrypts. */
export interface UnreadableSecret extends StoredSecret {
  readonly reason: string;
  readonly opened: DecryptedSecret;
}

/**
 * The parts in clear text. A part is undefined when no key decrypts it, and null when it does not
 * exist.
 */
interface DecryptedSecret {
  readonly secret: string | undefined;
  readonly previous: string | null | undefined;
  readonly headers: string | null | undefined;
}

/** Result of a rotation; each secret is counted once. */
export interface Reencryption {
  readonly reencrypted: number;
  /** Secrets that had the current key already. */
  readonly current: number;
  /** Secrets that no known key decrypts, by id. They are unchanged. */
  readonly unreadable: readonly UnreadableSecret[];
}

const headOf = (column: string): string => `substring(${column} FROM 1 FOR ${headBytes})`;

const countByHeadText = `
  SELECT encode(${headOf("sealed")}, 'hex') AS head, count(DISTINCT id)::int AS count, (array_agg(DISTINCT id ORDER BY id))[1:10] AS ids
  FROM svc.subscriptions CROSS JOIN LATERAL unnest(ARRAY[encrypted_secret, encrypted_previous, encrypted_headers]) AS part (sealed)
  WHERE sealed IS NOT NULL
  GROUP BY 1
  ORDER BY 1`;

const countText = `
  SELECT count(*) FILTER (WHERE is_other)::int AS others, count(*) FILTER (WHERE NOT is_other)::int AS current
  FROM (SELECT ${hasOtherKey("$1")} AS is_other FROM svc.subscriptions) AS subscription`;

const findOthersText = `
  SELECT id, user_id AS "userId", url, encrypted_secret AS sealed, encrypted_previous AS previous, encrypted_headers AS headers,
    header_names AS "headerNames"
  FROM svc.subscriptions
  WHERE id > $1 AND ${hasOtherKey("$2")}
  ORDER BY id
  LIMIT $3`;

/**
 * Returns the SQL condition that a part was encrypted with another key than the key of the head.
 */
function hasOtherKey(head: string): string {
  const parts = ["encrypted_secret", "encrypted_previous", "encrypted_headers"].map(
    (column) => `coalesce(${headOf(column)} <> decode(${head}, 'hex'), false)`,
  );
  return `(${parts.join(" OR ")})`;
}

// Replaces a row only if it is still as it was read. A second run or a dispatcher therefore never
// sees a partial change.
const replaceText = `
  WITH ${actingCte("$9")}
  UPDATE svc.subscriptions AS subscription
  SET encrypted_secret = given.fresh, secret_hint = coalesce(given.hint, secret_hint),
    encrypted_previous = given.fresh_previous,
    previous_until = CASE WHEN given.fresh_previous IS NOT NULL THEN previous_until END,
    encrypted_headers = given.fresh_headers,
    header_names = CASE WHEN given.fresh_headers IS NOT NULL THEN header_names ELSE '{}' END
  FROM acting, unnest($1::int[], $2::bytea[], $3::bytea[], $4::text[], $5::bytea[], $6::bytea[], $7::bytea[], $8::bytea[])
    AS given (id, stale, fresh, hint, stale_previous, fresh_previous, stale_headers, fresh_headers)
  WHERE subscription.id = given.id AND subscription.encrypted_secret = given.stale
    AND subscription.encrypted_previous IS NOT DISTINCT FROM given.stale_previous
    AND subscription.encrypted_headers IS NOT DISTINCT FROM given.stale_headers
  RETURNING subscription.id`;

/**
 * Throws when a stored secret was encrypted with a key that is missing. Its deliveries could not be
 * signed, and new secrets would need another key. Scans the subscriptions once, and again to
 * refuse. Does not look for damaged bytes.
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
  // Not the sum of the counts: a subscription has several parts, and a rotation may have left two
  // keys in them.
  const [{ total } = { total: 0 }] = await sql<{ total: number }>(
    "SELECT count(*)::int AS total FROM svc.subscriptions",
  );
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
 * @param actor Actor in the audit trail, which gets a row per batch.
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
  const [counts] = await sql<{ others: number; current: number }>(countText, [secretBox.currentHead]);
  const { others: of = 0, current = 0 } = counts ?? {};
  const unreadable: UnreadableSecret[] = [];
  let reencrypted = 0;
  for (let after = 0; ;) {
    const batch = await sql<StoredSecret>(findOthersText, [after, secretBox.currentHead, batchSize]);
    const last = batch.at(-1);
    if (last === undefined) return { reencrypted, current, unreadable };
    after = last.id;
    const opened = batch.map((stored) => ({ stored, ...decryptStored(secretBox, stored) }));
    const readable = opened.filter(({ reason }) => reason === undefined);
    for (const { stored, reason, opened: parts } of opened)
      if (reason !== undefined) unreadable.push({ ...stored, reason, opened: parts });
    const fresh = readable.map(({ stored, opened: parts }) => reencrypt(secretBox, stored, parts));
    reencrypted += (await replace(sql, fresh, actor)).size;
    onProgress({ reencrypted, of });
  }
}

/** Decrypts each part. `reason` is about the first part that no key decrypts. */
function decryptStored(
  secretBox: Pick<SecretBox, "decrypt">,
  { sealed, previous, headers }: StoredSecret,
): { readonly opened: DecryptedSecret; readonly reason: string | undefined } {
  const reasons: string[] = [];
  const openPart = (part: Uint8Array): string | undefined => {
    try {
      return secretBox.decrypt(part);
    } catch (error) {
      reasons.push(messageOf(error));
      return undefined;
    }
  };
  const opened = {
    secret: openPart(sealed),
    previous: previous && openPart(previous),
    headers: headers && openPart(headers),
  };
  return { opened, reason: reasons[0] };
}

interface ReencryptedSecret extends StoredSecret {
  readonly fresh: Uint8Array;
  readonly hint?: string;
  readonly freshPrevious: Uint8Array | null;
  readonly freshHeaders: Uint8Array | null;
}

/** Encrypts the decrypted parts with the current key. */
function reencrypt(
  secretBox: Pick<SecretBox, "encrypt">,
  stored: StoredSecret,
  { secret = "", previous, headers }: DecryptedSecret,
): ReencryptedSecret {
  const seal = (text: string | null | undefined): Uint8Array | null =>
    text === null || text === undefined ? null : secretBox.encrypt(text);
  return {
    ...stored,
    fresh: secretBox.encrypt(secret),
    freshPrevious: seal(previous),
    freshHeaders: seal(headers),
  };
}

/** A subscription that has a new secret, or has lost headers. */
interface Replaced extends StoredSecret {
  /** The new secret; undefined when the old one could be read and stays. */
  readonly secret: string | undefined;
  /** Names of the headers that no key decrypted. Their values are lost. */
  readonly lostHeaders: readonly string[];
}

/**
 * Creates a new signing secret for every subscription whose stored secret cannot be decrypted, in
 * one statement. Drops headers and earlier secrets that cannot be decrypted.
 *
 * @returns The new secrets in clear text, for the only time. Leaves out subscriptions that have
 *   changed since.
 */
export async function replaceUnreadable({
  sql,
  secretBox,
  unreadable,
  actor,
}: {
  readonly sql: Sql;
  /** Actor in the audit trail. */
  readonly actor: Actor;
  readonly secretBox: Pick<SecretBox, "encrypt">;
  readonly unreadable: readonly UnreadableSecret[];
}): Promise<readonly Replaced[]> {
  const minted = unreadable.map((stored) => {
    const secret = stored.opened.secret === undefined ? mintSecret() : undefined;
    const kept = { ...stored.opened, secret: secret ?? stored.opened.secret };
    const lostHeaders = stored.opened.headers === undefined ? stored.headerNames : [];
    return {
      ...reencrypt(secretBox, stored, kept),
      secret,
      lostHeaders,
      ...(secret !== undefined && { hint: secretHint(secret) }),
    };
  });
  const replaced = await replace(sql, minted, actor);
  return minted.filter(({ id }) => replaced.has(id));
}

/** Returns the ids of the secrets that were replaced. */
async function replace(
  sql: Sql,
  secrets: readonly ReencryptedSecret[],
  actor: Actor,
): Promise<ReadonlySet<number>> {
  const rows = await sql<{ id: number }>(replaceText, [
    ...arraysOf(secrets, "id", "sealed", "fresh", "hint"),
    ...arraysOf(secrets, "previous", "freshPrevious", "headers", "freshHeaders"),
    actorText(actor),
  ]);
  return new Set(rows.map(({ id }) => id));
}
