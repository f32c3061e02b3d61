import { noClaims, type Caller } from "../../src/kit/caller.ts";
import { allScopes, type Grant } from "../../src/kit/scopes.ts";
import type { TokenProvider } from "../../src/users/provider.ts";

/** Permissions of a token without scopes, end and admin flag. */
export const fullGrant: Grant = { scopes: allScopes, expiresAt: undefined, isOfAdmin: false };

/** Returns a caller with a token of the service. */
export function makeCaller(user: Omit<Caller, "claims">): Caller {
  return { ...user, claims: noClaims };
}

/** Returns the caller of a token; undefined for a refused token. */
export async function callerOfToken(
  tokens: Pick<TokenProvider, "identify">,
  token: string,
): Promise<Caller | undefined> {
  const identity = await tokens.identify(token);
  return identity.kind === "known" ? identity.caller : undefined;
}
