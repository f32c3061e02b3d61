import { AppError } from "../kit/errors.ts";
import type { FailureLimit } from "../http/failure-limit.ts";
import type { ApiMiddleware } from "../http/state.ts";
import { pause } from "../kit/worker.ts";
import type { TokenProvider } from "./provider.ts";
import { parseBearer } from "./token.ts";

const scheme = "Bearer";

/** Delays a refusal: a few connections could otherwise cause thousands of them a second. */
const refusalDelayMs = 1000;

/**
 * Puts the token's user and id on `ctx.state`.
 *
 * @param failures Counts the failed attempts of client addresses, since each costs a statement.
 * @throws AppError `token.missing` or `token.invalid`, which differ only in the header. Throws
 *   `rate.exceeded` when the client's address has failed too often, unless the token was valid
 *   before: clients that share the address are not locked out.
 */
export function createAuthenticate({
  tokens,
  failures,
}: {
  readonly tokens: Pick<TokenProvider, "find" | "wasFound">;
  readonly failures: FailureLimit;
}): ApiMiddleware {
  return async (ctx, next) => {
    // `headers` has only the first of several.
    const credentials = parseBearer(ctx.req.headersDistinct["authorization"]);
    if (credentials.kind === "missing") throw unauthenticated("token.missing", scheme);
    const token = credentials.kind === "token" ? credentials.token : undefined;
    const { clientAddress = "" } = ctx.state;
    const waitSeconds = failures.waitSeconds(clientAddress);
    if (waitSeconds !== undefined && !(token !== undefined && tokens.wasFound(token))) {
      await pause(refusalDelayMs, new AbortController().signal);
      throw new AppError("rate.exceeded", "Too many failed authentications.", {
        headers: { "Retry-After": String(waitSeconds) },
      });
    }
    const caller = token === undefined ? undefined : await tokens.find(token);
    if (caller === undefined) {
      failures.note(clientAddress);
      throw unauthenticated("token.invalid", `${scheme} error="invalid_token"`);
    }
    ctx.state.caller = caller;
    ctx.state.tokenId = caller.tokenId;
    await next();
  };
}

/** Makes a 401. RFC 6750, section 3: `error` only for a request that carried a token. */
function unauthenticated(code: "token.missing" | "token.invalid", challenge: string): AppError {
  return new AppError(code, "Unauthenticated.", { headers: { "WWW-Authenticate": challenge } });
}
