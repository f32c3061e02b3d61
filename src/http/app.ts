import Koa from "koa";
import { AppError, codeOf } from "../kit/errors.ts";
import type { Log } from "../telemetry/log.ts";
import type { HttpMetrics } from "../telemetry/metrics/http.ts";
import type { Rate } from "../config/kinds.ts";
import { noTracing, type Tracing } from "../telemetry/tracing.ts";
import { createForwardedLimit } from "./address-limits.ts";
import { createClientAddresses } from "./client-address.ts";
import type { ConsolePages } from "./console.ts";
import { createCors } from "./cors.ts";
import { answerUnsupported, createErrorRenderer, unknownRoute } from "./error-body.ts";
import { createMemoryBudget, createRequestMemory, type MemoryBudget } from "./memory-budget.ts";
import { createRateLimit } from "./rate-limit.ts";
import { createRequestLog } from "./request-log.ts";
import { createRequestTrace } from "./request-trace.ts";
import { securityHeaders } from "./security-headers.ts";
import type { ApiContext, ApiMiddleware, ApiRouter, RequestState } from "./state.ts";
import { createUserTurns } from "./user-turns.ts";

/**
 * Limit of the headers. It is far above the headers of clients, because each header costs more
 * memory than its bytes.
 */
const maxHeaders = 200;

/**
 * Creates the HTTP application: request id and log line, errors, CORS, authentication, limits,
 * routes. Routes read the bodies themselves (body.ts), after their cheaper checks.
 *
 * @param routePrefix Every path under it needs a token, unknown ones too; every other path but the
 *   console's is a 404.
 * @param router Holds the routes of all rooms, already under the prefix.
 * @param openRouter Holds the routes that need no token; by default none.
 * @param consolePages Pages of their own path, which need no token; by default none.
 * @param publicUrl Origin that clients use.
 * @param concurrency Limits the requests at work; by default any number.
 * @param userTurns Limits one user's requests, in flight and waiting; by default any number.
 * @param bodyLimitBytes Limit of the body of a request; by default 1 MiB.
 * @param memoryBudget Memory that requests in flight may take; by default any amount.
 * @param trustedProxies CIDRs of proxies whose `X-Forwarded-For` is believed.
 * @param maxConnectionsPerAddress Limit of requests in flight of one forwarded address; by default
 *   any number.
 * @param rateLimit Limit of each user; by default none.
 * @param corsOrigins Origins whose pages may call the API; by default none.
 */
export function createApp({
  log,
  routePrefix,
  authenticate,
  router,
  openRouter,
  consolePages,
  isUnavailable,
  publicUrl,
  concurrency,
  userTurns = createUserTurns({ atWork: Number.POSITIVE_INFINITY })(Number.POSITIVE_INFINITY),
  bodyLimitBytes = 1024 * 1024,
  memoryBudget = createMemoryBudget({ limitBytes: Number.POSITIVE_INFINITY }),
  trustedProxies = [],
  maxConnectionsPerAddress,
  rateLimit,
  corsOrigins = [],
  metrics,
  tracing = noTracing,
}: {
  readonly log: Log;
  readonly routePrefix: string;
  readonly authenticate: ApiMiddleware;
  readonly router: ApiRouter;
  readonly openRouter?: ApiRouter;
  readonly consolePages?: ConsolePages | undefined;
  readonly isUnavailable: (error: unknown) => boolean;
  readonly publicUrl?: string | undefined;
  readonly concurrency?: ApiMiddleware;
  readonly userTurns?: ApiMiddleware;
  readonly bodyLimitBytes?: number;
  readonly memoryBudget?: MemoryBudget | undefined;
  readonly trustedProxies?: readonly string[];
  readonly maxConnectionsPerAddress?: number;
  readonly rateLimit?: Rate | undefined;
  readonly corsOrigins?: readonly string[];
  readonly metrics?: HttpMetrics;
  readonly tracing?: Tracing;
}): Koa<RequestState> {
  const app = new Koa<RequestState>();
  // Koa's own handler prints to stderr. Only failures while an answer is sent get here.
  app.on("error", (error: unknown, ctx: ApiContext) => {
    if (!isOfLeaving(error, ctx)) ctx.state.log().warn({ err: error }, "answer not sent");
  });
  if (tracing.isOn) app.use(createRequestTrace(tracing));
  const addresses = createClientAddresses(trustedProxies);
  app.use(createRequestLog(log, addresses, metrics));
  app.use(createErrorRenderer(isUnavailable));
  app.use(createHeaders(publicUrl));
  // A preflight carries no token.
  if (corsOrigins.length > 0) app.use(createCors(corsOrigins));
  if (trustedProxies.length > 0 && maxConnectionsPerAddress !== undefined)
    app.use(createForwardedLimit(maxConnectionsPerAddress, addresses));
  if (concurrency !== undefined) app.use(concurrency);
  app.use(guard({ routePrefix, authenticate, openRouter, consolePages }));
  if (rateLimit !== undefined) app.use(createRateLimit(rateLimit));
  app.use(userTurns);
  app.use(createRequestMemory(memoryBudget, bodyLimitBytes));
  app.use(router.routes());
  app.use(createFallback(openRouter === undefined ? [router] : [router, openRouter]));
  return app;
}

/**
 * Returns whether the error only means that the client left, as every client of an event stream
 * does. The request's log line records it.
 */
function isOfLeaving(error: unknown, { req, res }: ApiContext): boolean {
  // An error of the answer itself ends the connection.
  return (
    codeOf(error) === "ERR_STREAM_PREMATURE_CLOSE" || (error === req.socket.errored && error !== res.errored)
  );
}

/** Sets the headers of every answer, also of errors. */
function createHeaders(publicUrl: string | undefined): ApiMiddleware {
  const headers = Object.entries(securityHeaders(publicUrl));
  return (ctx, next) => {
    for (const [name, value] of headers) ctx.res.setHeader(name, value);
    return next();
  };
}

function guard({
  routePrefix,
  authenticate,
  openRouter,
  consolePages,
}: {
  readonly routePrefix: string;
  readonly authenticate: ApiMiddleware;
  readonly openRouter: ApiRouter | undefined;
  readonly consolePages: ConsolePages | undefined;
}): ApiMiddleware {
  const openRoutes =
    openRouter !== undefined && openRouter.stack.length > 0 ? openRouter.routes() : undefined;
  return (ctx, next) => {
    checkHost(ctx);
    // `rawHeaders` has names and values in turn.
    if (ctx.req.rawHeaders.length / 2 > maxHeaders)
      throw new AppError(
        "request.headers_too_large",
        `The request must not have more than ${maxHeaders} headers.`,
      );
    const path = pathOf(ctx);
    if (consolePages?.has(path) === true) return consolePages.serve(ctx, next);
    if (path !== routePrefix && !path.startsWith(`${routePrefix}/`)) throw unknownRoute(path);
    if (openRoutes === undefined) return authenticate(ctx, next);
    return openRoutes(ctx as Parameters<typeof openRoutes>[0], () => authenticate(ctx, next));
  };
}

/**
 * Throws the 400 of RFC 9112, section 3.2. With two hosts, a proxy may have used the one that
 * Node.js ignores.
 */
function checkHost({ req }: ApiContext): void {
  if (req.headers.host === undefined && req.httpVersion === "1.1")
    throw new AppError("request.malformed", "The request has no Host header.");
  // Node.js keeps the first Host header.
  if ((req.headersDistinct["host"]?.length ?? 0) > 1)
    throw new AppError("request.malformed", "The request has more than one Host header.");
}

/** Returns the path. Throws for a malformed target, so that later middleware may use `ctx.path`. */
function pathOf(ctx: ApiContext): string {
  try {
    const path: unknown = ctx.path;
    if (typeof path === "string") return path;
  } catch {
    // The target is an absolute URL with a fault, such as `http://a:b/`.
  }
  throw new AppError("request.malformed", "The request target is not a valid URL.");
}

/** Creates the last middleware, which runs when no route has both the path and the method. */
function createFallback(routers: readonly ApiRouter[]): ApiMiddleware {
  return (ctx) => {
    const layers = routers.flatMap((router) => router.match(ctx.path, ctx.method).path);
    // `/webhooks/preview` also matches `/webhooks/:id`, although it is no webhook.
    const own = layers.filter(({ path }) => path === ctx.path.replace(/\/$/, ""));
    const methods = (own.length > 0 ? own : layers).flatMap((layer) => layer.methods);
    if (methods.length === 0) throw unknownRoute(ctx.path);
    answerUnsupported(ctx, methods);
  };
}
