import type { Sql } from "../db/sql.ts";
import { createBatcher } from "../kit/batcher.ts";
import { setBounded } from "../kit/bounded-map.ts";
import { noClaims, type Caller } from "../kit/caller.ts";
import { messageOf } from "../kit/errors.ts";
import type { Log } from "../telemetry/log.ts";
import type { Identifier } from "./authenticate.ts";
import {
  callerOf,
  disabledUser,
  expiredToken,
  invalidToken,
  revokedToken,
  type Identity,
} from "./identity.ts";
import { hashToken, isToken } from "./token.ts";

/**
 * Finds the users of personal access tokens. Costs one statement, or none for a text that cannot be
 * a token. Records the use afterwards, at most once a minute.
 */
export interface TokenFinder extends Identifier {
  /** Waits for the uses that are still being recorded. */
  close(): Promise<void>;
}

/** Limit of the remembered tokens, which take about 1.5 MB. */
const maxFound = 10_000;

/** Limit of the tokens of one look-up, and of concurrent look-ups. */
const lookUps = { tokens: 100, atWork: 4 };

interface FoundToken extends Pick<Caller, "id" | "name" | "email" | "isAdmin"> {
  readonly tokenId: number;
  readonly hash: string;
  readonly scopes: readonly string[];
  readonly expiresAt: Date | null;
  readonly state: "valid" | "revoked" | "expired" | "disabled";
  readonly isUseUnnoted: boolean;
}

// The database's clock decides on expiry, since all processes share it.
const findText = `
  SELECT token.id AS "tokenId", encode(token.hash, 'hex') AS hash, token.scopes, token.expires_at AS "expiresAt",
    owner.id, owner.name, owner.email, owner.is_admin AS "isAdmin",
    CASE WHEN token.revoked_at IS NOT NULL THEN 'revoked' WHEN token.expires_at <= now() THEN 'expired'
      WHEN owner.disabled_at IS NOT NULL THEN 'disabled' ELSE 'valid' END AS state,
    token.last_used_at IS NULL OR token.last_used_at < now() - interval '1 minute' AS "isUseUnnoted"
  FROM svc.tokens AS token
  JOIN svc.users AS owner ON owner.id = token.user_id
  WHERE token.hash = ANY($1::bytea[])`;

/**
 * Refusals by state. Only the holder of a token gets them, since the hash of the sent token was
 * found.
 */
const refusals: Readonly<Record<Exclude<FoundToken["state"], "valid">, Identity>> = {
  revoked: revokedToken,
  expired: expiredToken,
  disabled: disabledUser,
};

// Repeats the condition: another process may have recorded the use meanwhile.
const noteUseText = `
  UPDATE svc.tokens SET last_used_at = now()
  WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute')`;

/** Creates a finder that remembers no token yet. */
export function createTokenFinder(sql: Sql, log: Log): TokenFinder {
  /** Uses that are being recorded, by token id, so that a burst of requests writes once. */
  const notes = new Map<number, Promise<void>>();
  /** Hashes of found tokens, the most recent ones at the end. */
  const found = new Map<string, true>();

  /** Looks up the tokens of all requests of one turn of the event loop in one statement. */
  const lookUp = createBatcher<string, FoundToken | undefined>({
    maxItems: lookUps.tokens,
    atWork: lookUps.atWork,
    async handle(hashes) {
      const asked = [...new Set(hashes)].map((one) => `\\x${one}`);
      const tokens = await sql<FoundToken>(findText, [asked]);
      const rows = new Map(tokens.map((row) => [row.hash, row]));
      return hashes.map((one) => rows.get(one));
    },
  });

  function noteUse(tokenId: number): void {
    if (notes.has(tokenId)) return;
    const note = sql(noteUseText, [tokenId])
      .then(() => undefined)
      .catch((error: unknown) =>
        log.warn({ tokenId, reason: messageOf(error) }, "the use of a token could not be recorded"),
      )
      .finally(() => notes.delete(tokenId));
    notes.set(tokenId, note);
  }

  return {
    async identify(token) {
      if (!isToken(token)) return invalidToken;
      const tokenHash = hashToken(token).toString("hex");
      const row = await lookUp.add(tokenHash);
      if (row?.state !== "valid") {
        found.delete(tokenHash);
        return row === undefined ? invalidToken : refusals[row.state];
      }
      setBounded(found, [tokenHash, true], maxFound);
      if (row.isUseUnnoted) noteUse(row.tokenId);
      const { id, name, email, isAdmin, tokenId, scopes } = row;
      const grant = { scopes, expiresAt: row.expiresAt ?? undefined, isOfAdmin: isAdmin };
      return {
        kind: "known",
        caller: callerOf({ id, name, email, isAdmin, claims: noClaims }, grant),
        tokenId,
        grant,
      };
    },
    wasFound: (token) => isToken(token) && found.has(hashToken(token).toString("hex")),
    async close() {
      await Promise.all(notes.values());
    },
  };
}
