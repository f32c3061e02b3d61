import { createApp } from "../../src/http/app.ts";
import { startServer, type HttpServer } from "../../src/http/server.ts";
import { createRouter } from "../../src/http/state.ts";
import { AppError } from "../../src/kit/errors.ts";
import { addOpenApiRoutes } from "../../src/openapi/routes.ts";
import { asAda, createMemoryLog } from "../support/http.ts";

/** Serves a document without a database, to the token `ada`, or to another `audience`. */
export function startOpenApiServer(audience: string, makeDocument: () => unknown): Promise<HttpServer> {
  const router = createRouter("/svc-api");
  const openRouter = createRouter("/svc-api");
  addOpenApiRoutes({ audience, router, openRouter, makeDocument });
  const app = createApp({
    log: createMemoryLog().log,
    routePrefix: "/svc-api",
    authenticate: (ctx, next) => {
      if (ctx.get("Authorization") === "Bearer ada") return asAda(ctx, next);
      throw new AppError("token.missing", "Unauthenticated.");
    },
    router,
    openRouter,
    isUnavailable: () => false,
  });
  return startServer(app.callback(), { host: "127.0.0.1", port: 0 });
}
