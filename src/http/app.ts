import Koa from "koa";
import { AppError } from "../errors.ts";
import type { Log } from "../log.ts";
import { answerUnsupported, createErrorRenderer, unknownRoute } from "./error-body.ts";
import { createRequestLog } from "./request-log.ts";
import type { ApiContext, ApiMiddleware, ApiRouter, RequestState } from "./state.ts";

/**
 * The HTTP application: request id and log line, errors, authentication, routes. Bodies are read by the routes
 * themselves (body.ts), after their cheaper checks.
 *
 * @param routePrefix Every path under it needs a token, unknown ones too; every other path is a 404.
 * @param router Holds the routes of all rooms, already under the prefix.
 */
export function createApp({
  log,
  routePrefix,
  authenticate,
  router,
  isUnavailable,
}: {
  readonly log: Log;
  readonly routePrefix: string;
  readonly authenticate: ApiMiddleware;
  readonly router: ApiRouter;
  readonly isUnavailable: (error: unknown) => boolean;
}): Koa<RequestState> {
  const app = new Koa<RequestState>();
  // Koa's own handler prints to stderr; what reaches this one is a connection that broke while the answer was on its way.
  app.on("error", (error: unknown) => log.warn({ err: error }, "answer not sent"));
  app.use(createRequestLog({ log }));
  app.use(createErrorRenderer({ isUnavailable }));
  app.use(guard({ routePrefix, authenticate }));
  app.use(router.routes());
  app.use(createFallback(router));
  return app;
}

function guard({
  routePrefix,
  authenticate,
}: {
  readonly routePrefix: string;
  readonly authenticate: ApiMiddleware;
}): ApiMiddleware {
  return (ctx, next) => {
    ctx.set("X-Content-Type-Options", "nosniff");
    // Answers are somebody's own records: no cache on the way may keep them.
    ctx.set("Cache-Control", "no-store");
    const path = pathOf(ctx);
    if (path !== routePrefix && !path.startsWith(`${routePrefix}/`)) throw unknownRoute(path);
    return authenticate(ctx, next);
  };
}

/** Whoever comes later may use `ctx.path`: it was read once without throwing. */
function pathOf(ctx: ApiContext): string {
  try {
    const path: unknown = ctx.path;
    if (typeof path === "string") return path;
  } catch {
    // An absolute request target that is no URL, such as `http://a:b/`.
  }
  throw new AppError("request.malformed", "The request target is not a valid URL.");
}

/** Reached when no route has both the path and the method. */
function createFallback(router: ApiRouter): ApiMiddleware {
  return (ctx) => {
    const methods = router.match(ctx.path, ctx.method).path.flatMap((layer) => layer.methods);
    if (methods.length === 0) throw unknownRoute(ctx.path);
    answerUnsupported(ctx, [...new Set(methods)].toSorted());
  };
}
