import { AppError, unauthorizedError } from "../kit/errors.ts";
import { includesScope } from "../kit/scopes.ts";
import type { ApiContext, ApiMiddleware, ApiRouter } from "./state.ts";

/**
 * Required scope of each route, by method and path below the prefix. `any`: every valid token.
 * `resource`: `<name>:read` for GET and HEAD, else `<name>:write`. Such a route checks the scope
 * itself, once it knows that the resource exists. docs/authentication.md has the same table.
 */
export const scopeTable: Readonly<Record<string, "any" | "resource" | "webhooks" | "admin">> = {
  "GET /whoami": "any",
  "GET /resources": "any",
  "GET /openapi.json": "any",
  "* /resources/:name": "resource",
  "* /resources/:name/:id": "resource",
  "GET /webhooks": "webhooks",
  "POST /webhooks": "webhooks",
  // The handler also requires the scope of the resource whose events it shows.
  "POST /webhooks/preview": "webhooks",
  "GET /webhooks/:id": "webhooks",
  "PUT /webhooks/:id": "webhooks",
  "PATCH /webhooks/:id": "webhooks",
  "DELETE /webhooks/:id": "webhooks",
  "POST /webhooks/:id/rotate-secret": "webhooks",
  "POST /webhooks/:id/test": "webhooks",
  "POST /webhooks/:id/discard-held": "webhooks",
  "POST /webhooks/:id/replay": "webhooks",
  "GET /webhook-replays": "webhooks",
  "GET /webhook-replays/:id": "webhooks",
  "POST /webhook-replays/:id/pause": "webhooks",
  "POST /webhook-replays/:id/resume": "webhooks",
  "POST /webhook-replays/:id/cancel": "webhooks",
  "GET /webhook-deliveries": "webhooks",
  "GET /webhook-deliveries/:id": "webhooks",
  "POST /webhook-deliveries/:id/retry": "webhooks",
  // The handlers require the scopes of the resources whose events they show.
  "GET /events": "any",
  "GET /events/stream": "any",
  "GET /events/:uuid": "any",
  // A token sees all tokens of its user. It creates and revokes only tokens with no scopes beyond
  // its own.
  "GET /tokens": "any",
  "POST /tokens": "any",
  "GET /tokens/:id": "any",
  "DELETE /tokens/:id": "any",
  // The handler requires `webhooks` for the figures of receivers.
  "GET /stats": "any",
  "GET /audit": "admin",
  "GET /dead-letters": "admin",
  "GET /configuration": "admin",
  "POST /configuration/reload": "admin",
  "GET /users": "admin",
  "POST /users": "admin",
  "GET /users/:id": "admin",
  "PUT /users/:id": "admin",
  "PATCH /users/:id": "admin",
  "GET /users/:id/tokens": "admin",
  "POST /users/:id/tokens": "admin",
  "GET /users/:id/tokens/:tokenId": "admin",
  "DELETE /users/:id/tokens/:tokenId": "admin",
};

/** Throws 403 `token.scope` unless the request's token includes the scope. */
export function requireScope(ctx: ApiContext, needed: string): void {
  if (includesScope(ctx.state.grant.scopes, needed)) return;
  throw new AppError("token.scope", `This token lacks the scope ${needed}.`, {
    // RFC 6750, section 3.1.
    headers: { "WWW-Authenticate": `Bearer error="insufficient_scope", scope="${needed}"` },
  });
}

/** Throws 403 `token.scope` unless the token allows the request's method on the resource. */
export function requireResourceScope(ctx: ApiContext, resource: string): void {
  if (ctx.method === "OPTIONS") return;
  const isRead = ctx.method === "GET" || ctx.method === "HEAD";
  requireScope(ctx, `${resource}:${isRead ? "read" : "write"}`);
}

/**
 * Checks the scope on every route of a router, by `scopeTable`. Where that is `admin`, the user
 * must be an admin too. Call it when all routes are added.
 *
 * @param isAdminSomewhere Whether the user is an admin, of at least one resource, when the token is
 *   not limited.
 * @throws Error for a route that is not in the table.
 */
export function guardRoutes(
  router: ApiRouter,
  {
    routePrefix,
    isAdminSomewhere,
  }: { readonly routePrefix: string; readonly isAdminSomewhere: (ctx: ApiContext) => boolean },
): void {
  for (const layer of router.stack) {
    const path = String(layer.path).slice(routePrefix.length);
    const method = layer.methods.find((one) => one !== "HEAD") ?? "GET";
    const needed = scopeTable[`${method} ${path}`] ?? scopeTable[`* ${path}`];
    if (needed === undefined) throw new Error(`The route ${method} ${path} is not in the table of scopes.`);
    if (needed === "any" || needed === "resource") continue;
    // A limited token may not read the records of all users. So it may not create a subscription of
    // an admin that delivers them.
    const makesSubscription = path.startsWith("/webhooks") && ["POST", "PUT", "PATCH"].includes(method);
    const check: ApiMiddleware = (ctx, next) => {
      requireScope(ctx, needed);
      if (needed === "admin" && !ctx.state.caller.isAdmin) throw unauthorizedError("user.forbidden");
      if (makesSubscription && ctx.state.caller.isLimited === true && isAdminSomewhere(ctx))
        requireScope(ctx, "admin");
      return next();
    };
    layer.stack.unshift(check);
  }
}
