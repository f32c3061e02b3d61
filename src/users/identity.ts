import type { Caller } from "../kit/caller.ts";
import type { ErrorCode } from "../kit/errors.ts";
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

export const invalidToken: Identity = { kind: "refused", code: "token.invalid" };
export const disabledUser: Identity = {
  kind: "refused",
  code: "user.disabled",
  reason: "The user is disabled",
};

/** Returns the caller of a token. Without the scope `*` or `admin`, its user is no admin. */
export function callerOf(user: Omit<Caller, "isLimited">, { scopes }: Grant): Caller {
  return includesScope(scopes, "admin") ? user : { ...user, isAdmin: false, isLimited: true };
}
