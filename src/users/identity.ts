import type { Caller } from "../kit/caller.ts";
import { AppError, type ErrorCode } from "../kit/errors.ts";
import { includesScope, type Grant } from "../kit/scopes.ts";

/** Whose request it is, and what its token allows. */
export interface KnownIdentity {
  readonly kind: "known";
  readonly caller: Caller;
  /** Undefined: a JWT. */
  readonly tokenId: number | undefined;
  readonly grant: Grant;
}

/** What a token shows. */
export type Identity =
  | KnownIdentity
  | {
      readonly kind: "refused";
      readonly code: ErrorCode;
      /** Tells the holder of the token why. Undefined for a token that was never valid. */
      readonly reason?: string;
    };

/** Refuses a text that is no token of a user. */
export const invalidToken: Identity = { kind: "refused", code: "token.invalid" };
/** Refuses a revoked token. */
export const revokedToken = {
  kind: "refused",
  code: "token.revoked",
  reason: "The token is revoked",
} as const satisfies Identity;
/** Refuses every token of a disabled user. */
export const disabledUser = {
  kind: "refused",
  code: "user.disabled",
  reason: "The user is disabled",
} as const satisfies Identity;

/** Returns the caller of a token. Without the scope `*` or `admin`, its user is no admin. */
export function callerOf(user: Omit<Caller, "isLimited">, { scopes }: Grant): Caller {
  return includesScope(scopes, "admin") ? user : { ...user, isAdmin: false, isLimited: true };
}

/** RFC 6750, section 3: `error` only for a request that carried a token. */
export function unauthenticated(code: ErrorCode, reason?: string): AppError {
  const error = code === "token.missing" ? "" : ' error="invalid_token"';
  const description = reason === undefined ? "" : `, error_description="${reason}"`;
  return new AppError(code, "Unauthenticated.", {
    headers: { "WWW-Authenticate": `Bearer${error}${description}` },
  });
}
