import { randomUUID } from "node:crypto";
import type { Log } from "../telemetry/log.ts";
import type { HttpMetrics } from "../telemetry/metrics/http.ts";
import type { ClientAddresses } from "./client-address.ts";
import { refusalIn } from "./refusal.ts";
import type { ApiContext, ApiMiddleware } from "./state.ts";

/** Allowed form of a client's request id: printable in every log and header without quoting. */
const saneRequestId = /^[A-Za-z0-9._-]{1,128}$/;

/** nginx's status for a client that left before the answer was sent. */
const abortedStatus = 499;

/** Limit in characters of a path, and of a record's id in it, which usually take far fewer. */
const longestText = 512;

/** Pattern of a token of this service (docs/authentication.md). */
const tokenText = /svc_[0-9A-Za-z]{40}[0-9A-Za-z]*/g;

/**
 * Gives every request an id and a log that carries it. Counts the request and writes one line, when
 * the answer has been sent or the client has left. Never logs headers, bodies or the query string,
 * which may contain secrets.
 */
export function createRequestLog(
  log: Log,
  addresses: ClientAddresses,
  metrics: HttpMetrics | undefined,
): ApiMiddleware {
  return (ctx, next) => {
    const startedAt = performance.now();
    metrics?.started();
    const given = ctx.get("X-Request-Id");
    ctx.state.requestId = saneRequestId.test(given) ? given : randomUUID();
    ctx.state.clientAddress = addresses.of(ctx.req);
    const { requestId, traceId } = ctx.state;
    const ids = traceId === undefined ? { requestId } : { requestId, traceId };
    // Created only when needed: few requests log more than their line, and a child takes some 3 us.
    ctx.state.log = () => log.child(ids);
    ctx.set("X-Request-Id", ctx.state.requestId);
    ctx.res.once("close", () => {
      const durationMs = performance.now() - startedAt;
      const refusal = refusalIn(ctx.res);
      if (refusal !== undefined) ctx.state.errorCode = refusal.code;
      const isAborted = refusal === undefined && !ctx.res.writableFinished;
      const status = refusal?.status ?? (isAborted ? abortedStatus : ctx.res.statusCode);
      const { isOverLimit } = ctx.state;
      metrics?.ended({ method: ctx.method, route: routeOf(ctx), status, durationMs, isOverLimit });
      const level = status >= 500 ? "error" : "info";
      if (log.isLevelEnabled(level))
        log[level]({ ...ids, ...lineOf(ctx, { status, durationMs, isAborted }) }, "request");
    });
    return next();
  };
}

function lineOf(
  ctx: ApiContext,
  {
    status,
    durationMs,
    isAborted,
  }: { readonly status: number; readonly durationMs: number; readonly isAborted: boolean },
): Readonly<Record<string, unknown>> {
  // The type says that all values exist, but a request without a valid token has no caller.
  const { caller, tokenId, resource, recordId, errorCode, clientAddress } = ctx.state as Partial<
    typeof ctx.state
  >;
  return {
    event: "request",
    method: ctx.method,
    path: pathForLog(ctx.originalUrl),
    route: routeOf(ctx),
    status,
    errorCode,
    durationMs: Math.round(durationMs * 10) / 10,
    // Sizes according to the headers: undefined for a body of unknown length.
    bytesIn: numberOf(ctx.req.headers["content-length"]),
    bytesOut: numberOf(ctx.res.getHeader("Content-Length")),
    userId: caller?.id,
    tokenId,
    resource,
    recordId: recordId && textForLog(recordId),
    client: clientAddress,
    ...(isAborted ? { isAborted } : {}),
  };
}

/**
 * Returns the part of a request target that may be logged: its path, which is cut when very long.
 * The query string may contain a secret, and so may the user name and password of an absolute URL.
 * A token in the path, such as that of a revocation by its text, may still be valid.
 */
export function pathForLog(target: string): string {
  const [whole = ""] = target.split("?", 1);
  return textForLog(whole.replace(/^[^/]*:\/\/[^/]*/, ""));
}

/** Replaces tokens, and cuts a long text. */
function textForLog(text: string): string {
  return text.replace(tokenText, "svc_…").slice(0, longestText);
}

function numberOf(header: unknown): number | undefined {
  return header === undefined ? undefined : Number(header);
}

/**
 * Returns the matched route pattern, by which lines can be grouped; undefined for an unknown path.
 */
export function routeOf(ctx: ApiContext): string | undefined {
  const route: unknown = ctx["_matchedRoute"];
  return typeof route === "string" ? route : undefined;
}
