import type { Caller } from "../kit/caller.ts";
import { AppError, type ErrorCode } from "../kit/errors.ts";
import { includesScope, type Grant } from "../kit/scopes.ts";

/** The user of a request, and the permissions of its token. */
interface KnownIdentity {
  readonly kind: "known";
  readonly caller: Caller;
  /** Id of the token. Undefined: a JWT. */
  readonly tokenId: number | undefined;
  readonly grant: Grant;
}

/** Result of the identification of a token. */
export type Identity =
  | KnownIdentity
  | {
      readonly kind: "refused";
      readonly code: ErrorCode;
      /** Reason for the holder of the token. Undefined for a token that was never valid. */
      readonly reason?: string;
    };

/** Refusal of a text that is not a token of a user. */
export const invalidToken: Identity = { kind: "refused", code: "token.invalid" };
export const revokedToken = {
  kind: "refused",
  code: "token.revoked",
  reason: "The token is revoked",
} as const satisfies Identity;
/** Refusal of a token or JWT after its end. */
export const expiredToken: Identity = {
  kind: "refused",
  code: "token.expired",
  reason: "The token has expired",
};
/** Refusal of every token of a disabled user. */
export const disabledUser = {
  kind: "refused",
  code: "user.disabled",
  reason: "The user is disabled",
} as const satisfies Identity;

/** Returns the caller of a token. Without the scope `*` or `admin`, its user is no admin. */
export function callerOf(user: Omit<Caller, "isLimited">, { scopes }: Grant): Caller {
  return includesScope(scopes, "admin") ? user : { ...user, isAdmin: false, isLimited: true };
}

/** Returns the 401 error. RFC 6750, section 3: `error` is only for a request with a token. */
export function unauthenticated(code: ErrorCode, reason?: string): AppError {
  const error = code === "token.missing" ? "" : ' error="invalid_token"';
  const description = reason === undefined ? "" : `, error_description="${reason}"`;
  return new AppError(code, "Unauthenticated.", {
    headers: { "WWW-Authenticate": `Bearer${error}${description}` },
  });
}
