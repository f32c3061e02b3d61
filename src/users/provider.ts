import { timingSafeEqual } from "node:crypto";
import type { Actor } from "../kit/actor.ts";
import { actingAs } from "../db/audit.ts";
import type { PrismaClient } from "../db/generated/client.ts";
import type { TokenModel } from "../db/generated/models.ts";
import { databaseFaultOf } from "../db/prisma-errors.ts";
import type { Sql } from "../db/sql.ts";
import { messageOf, OperatorError } from "../kit/errors.ts";
import type { Log } from "../telemetry/log.ts";
import type { Caller } from "../kit/caller.ts";
import { hashToken, isToken, mintToken } from "./token.ts";

/** A listed token, without the token itself, which is not stored. */
export type TokenInfo = Omit<TokenModel, "hash">;

/** A new token. */
export interface IssuedToken extends TokenInfo {
  /** The only time that the token is shown. */
  readonly token: string;
}

/** A user, and the token of the request. */
export interface TokenHolder extends Caller {
  readonly tokenId: number;
}

/**
 * Issues personal access tokens, and finds their users. Only this part of the service knows how
 * tokens are stored.
 */
export interface TokenProvider {
  /**
   * Makes a token for a user. Programs that issue tokens themselves call this, as `svc-admin` does.
   *
   * @param expiresAt Default: never.
   * @throws OperatorError when there is no such user.
   */
  issue(options: {
    readonly userId: number;
    readonly name: string;
    readonly expiresAt?: Date | undefined;
  }): Promise<IssuedToken>;
  /**
   * Finds the user of a token. Undefined for a text that is no token, for an unknown, revoked or
   * expired one, and for a disabled user. Costs one statement, or none for a text that is no token.
   * Records the use afterwards, at most once a minute.
   */
  find(token: string): Promise<TokenHolder | undefined>;
  /** Returns whether `find` found the token lately. Runs no statement, and may be out of date. */
  wasFound(token: string): boolean;
  /** Lists a user's tokens, newest first, expired and revoked ones included. */
  list(userId: number): Promise<readonly TokenInfo[]>;
  /**
   * Revokes a token, and returns it, also when it was revoked before. Undefined for an unknown id.
   * Takes effect with the next request.
   */
  revoke(id: number): Promise<TokenInfo | undefined>;
  /** Waits for the uses that are still being recorded. */
  close(): Promise<void>;
}

/** About 1.5 MB. */
const maxFound = 10_000;

const textOf = (hash: Uint8Array): string => Buffer.from(hash).toString("base64");

interface FoundToken extends TokenHolder {
  readonly hash: Buffer;
  readonly isUseUnnoted: boolean;
}

// The database's clock decides on expiry, since every process shares it.
const findText = `
  SELECT token.id AS "tokenId", token.hash, owner.id, owner.name, owner.email, owner.is_admin AS "isAdmin",
    token.last_used_at IS NULL OR token.last_used_at < now() - interval '1 minute' AS "isUseUnnoted"
  FROM svc.tokens AS token
  JOIN svc.users AS owner ON owner.id = token.user_id
  WHERE token.hash = $1 AND token.revoked_at IS NULL AND owner.disabled_at IS NULL
    AND (token.expires_at IS NULL OR token.expires_at > now())`;

// Repeats the condition: another process may have recorded the use meanwhile.
const noteUseText = `
  UPDATE svc.tokens SET last_used_at = now()
  WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute')`;

/**
 * Creates the token provider. In code: `await createTokenProvider({ prisma, sql, log }).issue({
 * userId: 7, name: "import" })`.
 *
 * @param actor Who issues and revokes, for the audit trail. Default: the role of the database
 *   connection.
 */
export function createTokenProvider({
  prisma,
  sql,
  log,
  actor,
}: {
  readonly prisma: PrismaClient;
  readonly sql: Sql;
  readonly log: Log;
  readonly actor?: Actor;
}): TokenProvider {
  /** By token id, so that a burst of requests writes once. */
  const notes = new Map<number, Promise<void>>();

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

  /** Hashes, the last found ones at the end. */
  const found = new Set<string>();
  function noteFound(hash: string): void {
    found.delete(hash);
    found.add(hash);
    const [oldest] = found;
    if (found.size > maxFound && oldest !== undefined) found.delete(oldest);
  }

  return {
    async issue({ userId, name, expiresAt }) {
      const token = mintToken();
      try {
        const creation = prisma.token.create({
          data: { userId, name, hash: hashToken(token), expiresAt: expiresAt ?? null },
          omit: { hash: true },
        });
        return { ...(await actingAs(prisma, actor, creation)), token };
      } catch (error) {
        if (databaseFaultOf(error).kind === "foreign_key")
          throw new OperatorError(`There is no user with the id ${userId}.`, { cause: error });
        throw error;
      }
    },
    async find(token) {
      if (!isToken(token)) return undefined;
      const hash = hashToken(token);
      const [row] = await sql<FoundToken>(findText, [Buffer.from(hash)]);
      if (row === undefined || !timingSafeEqual(row.hash, hash)) {
        found.delete(textOf(hash));
        return undefined;
      }
      noteFound(textOf(hash));
      if (row.isUseUnnoted) noteUse(row.tokenId);
      const { id, name, email, isAdmin, tokenId } = row;
      return { id, name, email, isAdmin, tokenId };
    },
    wasFound: (token) => isToken(token) && found.has(textOf(hashToken(token))),
    async list(userId) {
      return prisma.token.findMany({ where: { userId }, omit: { hash: true }, orderBy: { id: "desc" } });
    },
    async revoke(id) {
      // The first revocation counts; later ones keep its time.
      const change = prisma.token.updateMany({
        where: { id, revokedAt: null },
        data: { revokedAt: new Date() },
      });
      await actingAs(prisma, actor, change);
      return (await prisma.token.findUnique({ where: { id }, omit: { hash: true } })) ?? undefined;
    },
    async close() {
      await Promise.all(notes.values());
    },
  };
}
