import { setTimeout as sleep } from "node:timers/promises";
import { AppError, unauthorizedError } from "../kit/errors.ts";
import { noteUser } from "../http/address-limits.ts";
import type { FailureLimit } from "../http/failure-limit.ts";
import type { ApiContext, ApiMiddleware } from "../http/state.ts";
import type { Caller } from "../kit/caller.ts";
import { unauthenticated, type Identity } from "./identity.ts";
import { parseBearer, type Credentials } from "./token.ts";

/**
 * Delay of a refusal, because a few connections could otherwise cause thousands of refusals a
 * second.
 */
const refusalDelayMs = 1000;

/** Authentication of tokens of one kind. */
export interface Identifier {
  /** Returns the user of a token, or the reason of its refusal. */
  identify(token: string): Promise<Identity>;
  /**
   * Returns whether the token was found recently, without a statement. It may be invalid by now.
   */
  wasFound(token: string): boolean;
}

/**
 * Creates the middleware that puts the token's user, its id and its permissions on `ctx.state`.
 *
 * @param jwts Undefined: JWTs are malformed tokens.
 * @param failures Counts the failed attempts of client addresses, since each costs a statement.
 * @throws AppError 401 with the code and `WWW-Authenticate`. Throws `rate.exceeded` when the
 *   client's address has failed too often, unless the token was valid before: clients that share
 *   the address are not locked out.
 */
export function createAuthenticate({
  tokens,
  jwts,
  failures,
}: {
  readonly tokens: Identifier;
  readonly jwts?: Identifier | undefined;
  readonly failures: FailureLimit;
}): ApiMiddleware {
  return async (ctx, next) => {
    // `headers` has only the first of several values.
    const credentials = parseBearer(ctx.req.headersDistinct["authorization"]);
    if (credentials.kind === "missing") throw unauthenticated("token.missing");
    const known = identifierOf(credentials, tokens, jwts);
    const { clientAddress = "" } = ctx.state;
    const waitSeconds = failures.waitSeconds(clientAddress);
    if (waitSeconds !== undefined && known?.wasFound() !== true) {
      // Releases the place, because a thousand refusals a second would take the places of all other
      // requests.
      ctx.state.holdPlace?.(false);
      await sleep(refusalDelayMs);
      throw new AppError("rate.exceeded", "Too many failed authentications.", {
        headers: { "Retry-After": String(waitSeconds) },
      });
    }
    const identify = async (onFailure?: () => void): Promise<void> => {
      const identity = await known?.identify();
      if (identity?.kind !== "known") {
        onFailure?.();
        throw unauthenticated(identity?.code ?? "token.invalid", identity?.reason);
      }
      const { caller, tokenId, grant } = identity;
      Object.assign(ctx.state, { caller, tokenId, grant, identifiedAt: performance.now() });
      noteUser(ctx.req.socket, caller.id);
    };
    await identify(() => failures.note(clientAddress));
    // A token that ends while requests wait is not a guess, and counts against no address.
    ctx.state.identifyAgain = async () => {
      const before = ctx.state.caller;
      await identify();
      const { isAdmin, email } = ctx.state.caller;
      // Decisions before the body arrived relied on the admin flag, or on the address.
      if ((before.isAdmin && !isAdmin) || before.email !== email) throw unauthorizedError("user.forbidden");
    };
    await next();
  };
}

/**
 * Creates a function that returns the current caller of a request, for answers that take minutes.
 * Undefined when its token is no longer valid.
 */
export function createRecheck(
  tokens: Identifier,
  jwts: Identifier | undefined,
): (ctx: ApiContext) => Promise<Caller | undefined> {
  return async (ctx) => {
    const credentials = parseBearer(ctx.req.headersDistinct["authorization"]);
    const identity = await identifierOf(credentials, tokens, jwts)?.identify();
    return identity?.kind === "known" ? identity.caller : undefined;
  };
}

/**
 * Returns the identification of a token; undefined for anything but a token of an accepted kind.
 */
function identifierOf(
  credentials: Credentials,
  tokens: Identifier,
  jwts: Identifier | undefined,
): { readonly identify: () => Promise<Identity>; readonly wasFound: () => boolean } | undefined {
  if (credentials.kind !== "token" && credentials.kind !== "jwt") return undefined;
  const { kind, token } = credentials;
  const identifier = kind === "token" ? tokens : jwts;
  return (
    identifier && { identify: () => identifier.identify(token), wasFound: () => identifier.wasFound(token) }
  );
}
