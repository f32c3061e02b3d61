import { formatDateTime } from "../kit/date-time.ts";
import type { TokenInfo } from "./provider.ts";
import type { User } from "./store.ts";

export function presentUser(user: User): Record<string, unknown> {
  return {
    id: user.id,
    name: user.name,
    email: user.email,
    is_admin: user.isAdmin,
    is_disabled: user.disabledAt !== null,
    disabled_at: formatDateTime(user.disabledAt),
    subject: user.subject,
    created_at: formatDateTime(user.createdAt),
    updated_at: formatDateTime(user.updatedAt),
  };
}

/**
 * Returns a token's representation in lists. It does not contain the token itself, which is not
 * stored.
 */
export function presentToken(token: TokenInfo): Record<string, unknown> & { readonly id: number } {
  return {
    id: token.id,
    user_id: token.userId,
    name: token.name,
    scopes: token.scopes,
    parent_id: token.parentId,
    created_at: formatDateTime(token.createdAt),
    last_used_at: formatDateTime(token.lastUsedAt),
    expires_at: formatDateTime(token.expiresAt),
    revoked_at: formatDateTime(token.revokedAt),
  };
}
