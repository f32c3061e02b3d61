import { traceparentOf, type Tracing } from "../telemetry/tracing.ts";
import { pathForLog, routeOf } from "./request-log.ts";
import type { ApiMiddleware } from "./state.ts";

/**
 * Creates a span for every request, in the trace that its `traceparent` names. The span ends when
 * the answer has been sent or the client has left. It has the same data as the log: no headers, no
 * body, no query string.
 */
export function createRequestTrace(tracing: Tracing): ApiMiddleware {
  return (ctx, next) => {
    const span = tracing.begin({
      name: ctx.method,
      kind: "server",
      parent: traceparentOf(ctx.req.headers),
      attributes: {
        "http.request.method": ctx.method,
        "url.path": pathForLog(ctx.originalUrl),
        "network.protocol.version": ctx.req.httpVersion,
      },
    });
    ctx.state.traceId = span.traceId;
    ctx.res.once("close", () => {
      const route = routeOf(ctx);
      const status = ctx.res.headersSent ? ctx.res.statusCode : undefined;
      if (route !== undefined) span.rename(`${ctx.method} ${route}`);
      span.set({ "http.route": route, "http.response.status_code": status });
      span.end(status !== undefined && status >= 500 ? String(status) : undefined);
    });
    return tracing.run(span, next);
  };
}
