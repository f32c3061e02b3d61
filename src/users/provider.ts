import { hash } from "node:crypto";
import type { Actor } from "../kit/actor.ts";
import { handOver, handOverIn } from "../db/audit.ts";
import type { PrismaClient } from "../db/generated/client.ts";
import { sqlOverPrisma } from "../db/prisma-sql.ts";
import type { TokenModel } from "../db/generated/models.ts";
import type { Sql } from "../db/sql.ts";
import { AppError, messageOf, OperatorError } from "../kit/errors.ts";
import type { Log } from "../telemetry/log.ts";
import { noClaims } from "../kit/caller.ts";
import { everything } from "../kit/scopes.ts";
import { createBatcher } from "../kit/batcher.ts";
import { callerOf, disabledUser, invalidToken, type Identity } from "./identity.ts";
import { hashToken, isToken, mintToken } from "./token.ts";

/** A listed token, without the token itself, which is not stored. */
export type TokenInfo = Omit<TokenModel, "hash">;

/** A new token. */
export interface IssuedToken extends TokenInfo {
  /** The only time that the token is shown. */
  readonly token: string;
}

/** A token to be made with another one. */
export interface MadeWith {
  /** Undefined: a JWT. */
  readonly tokenId: number | undefined;
  readonly userId: number;
}

/**
 * Issues personal access tokens, and finds their users. Only this part of the service knows how
 * tokens are stored.
 */
export interface TokenProvider {
  /**
   * Makes a token for a user. Programs that issue tokens themselves call this, as `svc-admin` does.
   *
   * @param scopes Default: everything.
   * @param expiresAt Default: never.
   * @param madeWith The credential that asks for it. Revoking a token revokes those made with it.
   * @param actor Default: the provider's.
   * @param transaction To be a part of; default: one of its own.
   * @throws OperatorError when there is no such user.
   * @throws AppError `token.revoked` when the token that asks for it has been revoked meanwhile.
   */
  issue(options: {
    readonly userId: number;
    readonly name: string;
    readonly expiresAt?: Date | undefined;
    readonly scopes?: readonly string[] | undefined;
    readonly madeWith?: MadeWith;
    readonly actor?: Actor;
    readonly transaction?: Sql | undefined;
  }): Promise<IssuedToken>;
  /**
   * Returns the user of a token, or why it is refused. Costs one statement, or none for a text that
   * cannot be a token. Records the use afterwards, at most once a minute.
   */
  identify(token: string): Promise<Identity>;
  /** Whether `identify` has known the token lately. Says nothing about now, and asks nothing. */
  wasFound(token: string): boolean;
  /** Lists the tokens of one or all users, newest first, expired and revoked ones included. */
  list(userId?: number): Promise<readonly TokenInfo[]>;
  /** One page of the same, with the number of all. */
  page(
    userId: number,
    part: { readonly skip: number; readonly take: number },
  ): Promise<{ readonly rows: readonly TokenInfo[]; readonly total: number }>;
  /** Undefined when there is none with that id. */
  findInfo(id: number): Promise<TokenInfo | undefined>;
  /**
   * Revokes a token and those made with it, from the next request on. Returns the token, revoked
   * now or before; undefined when there is none with that id.
   */
  revoke(id: number, actor?: Actor): Promise<TokenInfo | undefined>;
  /** Waits for the uses that are still being noted. */
  close(): Promise<void>;
}

/** About 1.5 MB. */
const maxFound = 10_000;

/** Most tokens of one look-up, and how many look-ups run at one time. */
const lookUps = { tokens: 100, atWork: 4 };

/** The hash as `hashToken` has it, in hexadecimal digits. */
const textOf = (token: string): string => hash("sha256", token, "hex");

interface FoundToken {
  readonly tokenId: number;
  readonly hash: string;
  readonly scopes: readonly string[];
  readonly expiresAt: Date | null;
  readonly state: "valid" | "revoked" | "expired" | "disabled";
  readonly isUseUnnoted: boolean;
  readonly id: number;
  readonly name: string;
  readonly email: string;
  readonly isAdmin: boolean;
}

// The database's clock decides on expiry, since every process shares it.
const findText = `
  SELECT token.id AS "tokenId", encode(token.hash, 'hex') AS hash, token.scopes, token.expires_at AS "expiresAt",
    owner.id, owner.name, owner.email, owner.is_admin AS "isAdmin",
    CASE WHEN token.revoked_at IS NOT NULL THEN 'revoked' WHEN token.expires_at <= now() THEN 'expired'
      WHEN owner.disabled_at IS NOT NULL THEN 'disabled' ELSE 'valid' END AS state,
    token.last_used_at IS NULL OR token.last_used_at < now() - interval '1 minute' AS "isUseUnnoted"
  FROM svc.tokens AS token
  JOIN svc.users AS owner ON owner.id = token.user_id
  WHERE token.hash = ANY($1::bytea[])`;

/** Said only to who holds the token: its hash is the one that was looked up. */
const refusals: Readonly<Record<Exclude<FoundToken["state"], "valid">, Identity>> = {
  revoked: { kind: "refused", code: "token.revoked", reason: "The token is revoked" },
  expired: { kind: "refused", code: "token.expired", reason: "The token has expired" },
  disabled: disabledUser,
};

const insertText = `
  INSERT INTO svc.tokens (user_id, name, hash, scopes, parent_id, expires_at)
  VALUES ($1::int, $2, $3, $4::text[], $5::int, $6::timestamptz)
  RETURNING id, user_id AS "userId", name, scopes, parent_id AS "parentId", created_at AS "createdAt",
    last_used_at AS "lastUsedAt", expires_at AS "expiresAt", revoked_at AS "revokedAt"`;

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
  function noteFound(tokenHash: string): void {
    found.delete(tokenHash);
    found.add(tokenHash);
    const [oldest] = found;
    if (found.size > maxFound && oldest !== undefined) found.delete(oldest);
  }

  /** One statement for the tokens of all requests that come in one turn of the event loop. */
  const lookUp = createBatcher<string, FoundToken | undefined>({
    maxItems: lookUps.tokens,
    atWork: lookUps.atWork,
    async handle(hashes) {
      const asked = [...new Set(hashes)].map((one) => `\\x${one}`);
      const rows = new Map<string, FoundToken>();
      for (const row of await sql<FoundToken>(findText, [asked])) rows.set(row.hash, row);
      return hashes.map((one) => rows.get(one));
    },
  });

  return {
    async issue({
      userId,
      name,
      expiresAt,
      scopes = everything,
      madeWith,
      actor: issuer = actor,
      transaction,
    }) {
      const token = mintToken();
      const parentId = madeWith?.userId === userId ? (madeWith.tokenId ?? null) : null;
      const insert = async (within: Sql): Promise<TokenInfo | undefined> => {
        await handOverIn(within, issuer);
        await lockTokensOf(within, userId);
        if (madeWith?.tokenId !== undefined && !(await isInForce(within, madeWith.tokenId)))
          throw new AppError("token.revoked", "Unauthenticated.");
        const values = [
          userId,
          name,
          Buffer.from(hashToken(token)),
          [...scopes],
          parentId,
          expiresAt ?? null,
        ];
        const [made] = await within<TokenInfo>(insertText, values);
        return made;
      };
      const issued = await (transaction === undefined
        ? prisma.$transaction((tx) => insert(sqlOverPrisma(tx)))
        : insert(transaction));
      return { ...(issued as TokenInfo), token };
    },
    async identify(token) {
      if (!isToken(token)) return invalidToken;
      const tokenHash = textOf(token);
      const row = await lookUp.add(tokenHash);
      if (row?.state !== "valid") {
        found.delete(tokenHash);
        return row === undefined ? invalidToken : refusals[row.state];
      }
      noteFound(tokenHash);
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
    wasFound: (token) => isToken(token) && found.has(textOf(token)),
    async list(userId) {
      const where = userId === undefined ? {} : { userId };
      return prisma.token.findMany({ where, omit: { hash: true }, orderBy: { id: "desc" } });
    },
    async page(userId, { skip, take }) {
      const where = { userId };
      const [rows, total] = await prisma.$transaction([
        prisma.token.findMany({ where, omit: { hash: true }, orderBy: { id: "desc" }, skip, take }),
        prisma.token.count({ where }),
      ]);
      return { rows, total };
    },
    async findInfo(id) {
      return (await prisma.token.findUnique({ where: { id }, omit: { hash: true } })) ?? undefined;
    },
    async revoke(id, revoker = actor) {
      const token = await prisma.token.findUnique({ where: { id }, select: { userId: true } });
      if (token === null) return undefined;
      return prisma.$transaction(async (tx) => {
        await handOver(tx, revoker);
        await lockTokensOf(sqlOverPrisma(tx), token.userId);
        // The first revocation is the one that counts, however often it is repeated.
        await tx.$executeRaw`
          WITH RECURSIVE line AS (
            SELECT id FROM svc.tokens WHERE id = ${id}
            UNION SELECT made.id FROM svc.tokens AS made JOIN line ON made.parent_id = line.id
          )
          UPDATE svc.tokens SET revoked_at = now() WHERE revoked_at IS NULL AND id IN (SELECT id FROM line)`;
        return tx.token.findUniqueOrThrow({ where: { id }, omit: { hash: true } });
      });
    },
    async close() {
      await Promise.all(notes.values());
    },
  };
}

/**
 * Lets one transaction at a time make or revoke tokens of a user: none is made with a token whose
 * revocation has just missed it.
 */
async function lockTokensOf(sql: Sql, userId: number): Promise<void> {
  const rows = await sql("SELECT id FROM svc.users WHERE id = $1::int FOR NO KEY UPDATE", [userId]);
  if (rows.length === 0) throw new OperatorError(`There is no user with the id ${userId}.`);
}

async function isInForce(sql: Sql, tokenId: number): Promise<boolean> {
  const rows = await sql("SELECT id FROM svc.tokens WHERE id = $1::int AND revoked_at IS NULL", [tokenId]);
  return rows.length > 0;
}
