import { randomUUID } from "node:crypto";
import type { Log } from "../log.ts";
import type { ApiContext, ApiMiddleware } from "./state.ts";

/** What a client may choose as request id: printable in every log and header without quoting. */
const saneRequestId = /^[A-Za-z0-9._-]{1,128}$/;

/**
 * Gives every request an id and a log that carries it, and writes one line when the answer is out or the client is gone.
 * Never logged: headers, bodies and the query string, since any of them may hold a secret.
 *
 * @param now Monotonic clock, in ms.
 */
export function createRequestLog({
  log,
  now = () => performance.now(),
}: {
  readonly log: Log;
  readonly now?: () => number;
}): ApiMiddleware {
  return (ctx, next) => {
    const startedAt = now();
    const given = ctx.get("X-Request-Id");
    ctx.state.requestId = saneRequestId.test(given) ? given : randomUUID();
    const { requestId, traceId } = ctx.state;
    ctx.state.log = log.child(traceId === undefined ? { requestId } : { requestId, traceId });
    ctx.set("X-Request-Id", ctx.state.requestId);
    ctx.res.once("close", () => writeLine(ctx, now() - startedAt));
    return next();
  };
}

function writeLine(ctx: ApiContext, durationMs: number): void {
  const isAborted = !ctx.res.writableFinished;
  const line = {
    method: ctx.method,
    path: ctx.originalUrl.split("?", 1)[0],
    route: routeOf(ctx),
    status: ctx.res.statusCode,
    durationMs: Math.round(durationMs * 10) / 10,
    // Optional by life, not by type: a request without a valid token has none.
    userId: (ctx.state as Partial<typeof ctx.state>).caller?.id,
    ...(isAborted ? { isAborted } : {}),
  };
  if (ctx.res.statusCode >= 500) ctx.state.log.error(line, "request");
  else ctx.state.log.info(line, "request");
}

/** The matched pattern, by which lines can be grouped; undefined for an unknown path. */
export function routeOf(ctx: ApiContext): string | undefined {
  const route: unknown = ctx["_matchedRoute"];
  return typeof route === "string" ? route : undefined;
}
