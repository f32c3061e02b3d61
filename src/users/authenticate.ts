import { AppError } from "../errors.ts";
import type { ApiMiddleware } from "../http/state.ts";
import type { TokenProvider } from "./provider.ts";
import { parseBearer } from "./token.ts";

const scheme = "Bearer";

/** Puts the token's user and id on `ctx.state`; throws AppError `token.missing` or `token.invalid`, which one only by the header. */
export function createAuthenticate({
  tokens,
}: {
  readonly tokens: Pick<TokenProvider, "find">;
}): ApiMiddleware {
  return async (ctx, next) => {
    // `headers` holds only the first of several.
    const credentials = parseBearer(ctx.req.headersDistinct["authorization"]);
    if (credentials.kind === "missing") throw unauthenticated("token.missing", scheme);
    const caller = credentials.kind === "token" ? await tokens.find(credentials.token) : undefined;
    if (caller === undefined) throw unauthenticated("token.invalid", `${scheme} error="invalid_token"`);
    ctx.state.caller = caller;
    ctx.state.tokenId = caller.tokenId;
    await next();
  };
}

/** RFC 6750, section 3: `error` only for a request that carried a token. */
function unauthenticated(code: "token.missing" | "token.invalid", challenge: string): AppError {
  return new AppError(code, "Unauthenticated.", { headers: { "WWW-Authenticate": challenge } });
}
