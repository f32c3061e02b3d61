import type { Actor } from "../kit/actor.ts";
import { handOverIn } from "../db/audit.ts";
import type { Sql, Transact } from "../db/sql.ts";
import { counted } from "../kit/counted.ts";
import { AppError, OperatorError } from "../kit/errors.ts";
import type { Log } from "../telemetry/log.ts";
import { allScopes } from "../kit/scopes.ts";
import { createTokenFinder, type TokenFinder } from "./find-token.ts";
import { refuseSpent, type Credential } from "./refuse-spent.ts";
import { hashToken, mintToken } from "./token.ts";

/** A listed token, without the token itself, which is not stored. */
export interface TokenInfo {
  readonly id: number;
  readonly userId: number;
  readonly name: string;
  readonly scopes: readonly string[];
  /** Id of the user's token that created this one. */
  readonly parentId: number | null;
  readonly createdAt: Date;
  readonly lastUsedAt: Date | null;
  readonly expiresAt: Date | null;
  readonly revokedAt: Date | null;
}

export interface IssuedToken extends TokenInfo {
  /** The token itself, which is shown only once. */
  readonly token: string;
}

/**
 * Issues personal access tokens, and finds their users. No other part of the service knows how
 * tokens are stored.
 */
export interface TokenProvider extends TokenFinder {
  /**
   * Creates a token for a user. Programs that issue tokens themselves call this, as `svc-admin`
   * does.
   *
   * @param scopes Default: everything.
   * @param expiresAt Default: never.
   * @param mostInForce Limit of the user's tokens in force, this one included. Default: no limit.
   * @param madeWith Credential of the request. Revoking a token revokes the tokens made with it.
   * @param actor Default: the provider's.
   * @param transaction The transaction to join. Default: one of its own.
   * @throws OperatorError when the user does not exist.
   * @throws AppError `token.refused` when the user already has `mostInForce` tokens.
   * @throws AppError `token.revoked`, `user.disabled` or `user.forbidden` when the caller has lost
   *   the right to create it.
   */
  issue(options: {
    readonly userId: number;
    readonly name: string;
    readonly expiresAt?: Date | undefined;
    readonly scopes?: readonly string[] | undefined;
    readonly mostInForce?: number | undefined;
    readonly madeWith?: Credential;
    readonly actor?: Actor;
    readonly transaction?: Sql | undefined;
  }): Promise<IssuedToken>;
  /** Lists the tokens of one or all users, newest first, expired and revoked ones included. */
  list(userId?: number): Promise<readonly TokenInfo[]>;
  findInfo(id: number): Promise<TokenInfo | undefined>;
  /**
   * Revokes a token and the tokens made with it, from the next request on. Returns the token,
   * revoked now or before; undefined when no token has the id.
   */
  revoke(id: number, actor?: Actor): Promise<TokenInfo | undefined>;
}

const columns = `
  id, user_id AS "userId", name, scopes, parent_id AS "parentId", created_at AS "createdAt",
  last_used_at AS "lastUsedAt", expires_at AS "expiresAt", revoked_at AS "revokedAt"`;
const insertText = `
  INSERT INTO svc.tokens (user_id, name, hash, scopes, parent_id, expires_at)
  VALUES ($1::int, $2, $3, $4::text[], $5::int, $6::timestamptz) RETURNING ${columns}`;
const findText = `SELECT ${columns} FROM svc.tokens WHERE id = $1::int`;
const listText = `
  SELECT ${columns} FROM svc.tokens WHERE user_id = $1::int OR $1::int IS NULL ORDER BY id DESC`;
// Reads two ranges of one index, because a user may have a million expired tokens.
const countText = `
  SELECT (
      (SELECT count(*) FROM svc.tokens WHERE user_id = $1::int AND revoked_at IS NULL AND expires_at IS NULL)
      + (SELECT count(*) FROM svc.tokens WHERE user_id = $1::int AND revoked_at IS NULL AND expires_at > now())
    )::int AS count`;
// The first revocation counts, however often it is repeated.
const revokeText = `
  WITH RECURSIVE line AS (
    SELECT id FROM svc.tokens WHERE id = $1::int
    UNION SELECT made.id FROM svc.tokens AS made JOIN line ON made.parent_id = line.id
  )
  UPDATE svc.tokens SET revoked_at = now() WHERE revoked_at IS NULL AND id IN (SELECT id FROM line)`;

/**
 * Creates the token provider. In code: `await createTokenProvider({ sql, transact, log }).issue({
 * userId: 7, name: "import" })`.
 *
 * @param actor Author of the changes, for the audit trail. Default: the role of the database
 *   connection.
 */
export function createTokenProvider({
  sql: ownSql,
  transact,
  log,
  actor,
}: {
  readonly sql: Sql;
  readonly transact: Transact;
  readonly log: Log;
  readonly actor?: Actor;
}): TokenProvider {
  return {
    ...createTokenFinder(ownSql, log),
    async issue({
      userId,
      name,
      expiresAt,
      scopes = allScopes,
      mostInForce,
      madeWith,
      actor: issuer = actor,
      transaction,
    }) {
      const token = mintToken();
      const parentId = madeWith?.userId === userId ? (madeWith.tokenId ?? null) : null;
      const issued = await transact(async (sql) => {
        await handOverIn(sql, issuer);
        await lockTokensOf(sql, userId);
        if (madeWith !== undefined)
          await refuseSpent(sql, madeWith, { isForAdmins: madeWith.userId !== userId });
        if (mostInForce !== undefined) await refuseBeyondLimit(sql, userId, mostInForce);
        const values = [userId, name, hashToken(token), [...scopes], parentId, expiresAt ?? null];
        const [made] = await sql<TokenInfo>(insertText, values);
        return made as TokenInfo;
      }, transaction);
      return { ...issued, token };
    },
    list: (userId) => ownSql<TokenInfo>(listText, [userId ?? null]),
    findInfo: (id) => findToken(ownSql, id),
    async revoke(id, revoker = actor) {
      const token = await findToken(ownSql, id);
      if (token === undefined) return undefined;
      return transact(async (sql) => {
        await handOverIn(sql, revoker);
        await lockTokensOf(sql, token.userId);
        await sql(revokeText, [id]);
        return findToken(sql, id);
      });
    },
  };
}

async function findToken(sql: Sql, id: number): Promise<TokenInfo | undefined> {
  const [token] = await sql<TokenInfo>(findText, [id]);
  return token;
}

/**
 * Serialises the transactions that create or revoke tokens of a user. Otherwise a revocation could
 * miss a token that is being created.
 */
async function lockTokensOf(sql: Sql, userId: number): Promise<void> {
  const rows = await sql("SELECT id FROM svc.users WHERE id = $1::int FOR NO KEY UPDATE", [userId]);
  if (rows.length === 0) throw unknownUser(userId);
}

/** Returns the error for a user that does not exist. */
export function unknownUser(id: number): OperatorError {
  return new OperatorError(`There is no user with the id ${id}. See: svc-admin users list`);
}

/**
 * Refuses tokens beyond the limit. Call it after `lockTokensOf`: two transactions that both count
 * 99 would make 101.
 */
async function refuseBeyondLimit(sql: Sql, userId: number, most: number): Promise<void> {
  const [row] = await sql<{ count: number }>(countText, [userId]);
  const count = row?.count ?? 0;
  if (count < most) return;
  const message =
    `You have ${counted(count, "token")}, and one user may have ${most} (setting auth.maxTokensPerUser). ` +
    "Revoke one that is not needed.";
  throw new AppError("token.refused", message, { errors: { token: [message] } });
}
