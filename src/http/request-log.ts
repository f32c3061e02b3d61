import { randomUUID } from "node:crypto";
import type { Log } from "../telemetry/log.ts";
import type { HttpMetrics } from "../telemetry/metrics/http.ts";
import { createClientAddresses, type ClientAddresses } from "./client-address.ts";
import type { ApiContext, ApiMiddleware } from "./state.ts";

/** What a client may choose as request id: printable in every log and header without quoting. */
const saneRequestId = /^[A-Za-z0-9._-]{1,128}$/;

/** Characters. A path of the API takes far fewer. */
const longestPath = 512;

/**
 * Gives every request an id and a log that carries it. Counts the request and writes one line, when
 * the answer is out or the client is gone. Never logs headers, bodies or the query string: any of
 * them may hold a secret.
 *
 * @param now Monotonic clock, in ms.
 */
export function createRequestLog({
  log,
  addresses = createClientAddresses([]),
  metrics,
  now = () => performance.now(),
}: {
  readonly log: Log;
  readonly addresses?: ClientAddresses;
  readonly metrics?: HttpMetrics | undefined;
  readonly now?: () => number;
}): ApiMiddleware {
  return (ctx, next) => {
    const startedAt = now();
    metrics?.started();
    const given = ctx.get("X-Request-Id");
    ctx.state.requestId = saneRequestId.test(given) ? given : randomUUID();
    ctx.state.clientAddress = addresses.of(ctx.req);
    const { requestId, traceId } = ctx.state;
    ctx.state.log = log.child(traceId === undefined ? { requestId } : { requestId, traceId });
    ctx.set("X-Request-Id", ctx.state.requestId);
    ctx.res.once("close", () => {
      const durationMs = now() - startedAt;
      const isAborted = !ctx.res.writableFinished;
      metrics?.ended({
        method: ctx.method,
        route: routeOf(ctx),
        status: ctx.res.statusCode,
        isAborted,
        durationMs,
      });
      writeLine(ctx, { durationMs, isAborted });
    });
    return next();
  };
}

function writeLine(
  ctx: ApiContext,
  { durationMs, isAborted }: { readonly durationMs: number; readonly isAborted: boolean },
): void {
  // Optional by life, not by type: a request without a valid token has no caller.
  const { caller, tokenId, resource, recordId, errorCode, clientAddress } = ctx.state as Partial<
    typeof ctx.state
  >;
  const line = {
    event: "request",
    method: ctx.method,
    path: pathForLog(ctx.originalUrl),
    route: routeOf(ctx),
    status: ctx.res.statusCode,
    errorCode,
    durationMs: Math.round(durationMs * 10) / 10,
    // By their headers: undefined for a body of unknown length.
    bytesIn: numberOf(ctx.req.headers["content-length"]),
    bytesOut: numberOf(ctx.res.getHeader("Content-Length")),
    userId: caller?.id,
    tokenId,
    resource,
    recordId,
    client: clientAddress,
    ...(isAborted ? { isAborted } : {}),
  };
  if (ctx.res.statusCode >= 500) ctx.state.log.error(line, "request");
  else ctx.state.log.info(line, "request");
}

/**
 * Returns the part of a request target that may be logged: its path, cut where somebody probes. The
 * query string may hold a secret. So may the user name and password of a target that is a whole
 * URL.
 */
export function pathForLog(target: string): string {
  const [whole = ""] = target.split("?", 1);
  return whole.replace(/^[^/]*:\/\/[^/]*/, "").slice(0, longestPath);
}

function numberOf(header: unknown): number | undefined {
  return header === undefined ? undefined : Number(header);
}

/** The matched pattern, by which lines can be grouped; undefined for an unknown path. */
export function routeOf(ctx: ApiContext): string | undefined {
  const route: unknown = ctx["_matchedRoute"];
  return typeof route === "string" ? route : undefined;
}
