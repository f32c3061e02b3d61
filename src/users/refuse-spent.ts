import type { Sql } from "../db/sql.ts";
import { unauthorizedError } from "../kit/errors.ts";
import { disabledUser, revokedToken, unauthenticated } from "./identity.ts";

export interface Credential {
  readonly userId: number;
  /** Id of the token. Undefined: a JWT. */
  readonly tokenId: number | undefined;
}

const findText = `
  SELECT is_admin AS "isAdmin", disabled_at IS NOT NULL AS "isDisabled",
    EXISTS (SELECT FROM svc.tokens WHERE id = $2::int AND revoked_at IS NOT NULL) AS "isRevoked"
  FROM svc.users WHERE id = $1::int`;

/**
 * Refuses a change of users or tokens whose user lost the right to it after the request was
 * authenticated. The body may take 30 s. A disabled admin could otherwise enable itself again.
 *
 * @param sql The transaction of the change, which holds the lock of users or of this user.
 * @param isForAdmins Whether the user must be an admin. A JWT is not checked: its claim may make
 *   the user an admin, and is not stored.
 * @throws AppError `user.disabled`, `token.revoked` or `user.forbidden`.
 */
export async function refuseSpent(
  sql: Sql,
  { userId, tokenId }: Credential,
  { isForAdmins }: { readonly isForAdmins: boolean },
): Promise<void> {
  const [user] = await sql<{ isAdmin: boolean; isDisabled: boolean; isRevoked: boolean }>(findText, [
    userId,
    tokenId ?? null,
  ]);
  if (user === undefined) return;
  if (user.isRevoked) throw unauthenticated(revokedToken.code, revokedToken.reason);
  if (user.isDisabled) throw unauthenticated(disabledUser.code, disabledUser.reason);
  if (isForAdmins && tokenId !== undefined && !user.isAdmin) throw unauthorizedError("user.forbidden");
}
