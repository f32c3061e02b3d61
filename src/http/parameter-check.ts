import { validationError } from "../kit/errors.ts";
import { readQuery, shortened } from "./query-string.ts";
import type { ApiContext, ApiMiddleware, ApiRouter } from "./state.ts";

/** Reads by path below the prefix that have parameters, or ask by themselves. */
const readers: ReadonlySet<string> = new Set([
  "/resources/:name",
  "/resources/:name/:id",
  "/webhooks",
  "/webhook-deliveries",
  "/webhook-replays",
  "/events",
  "/events/stream",
  "/tokens",
  "/users",
  "/users/:id/tokens",
  "/audit",
  "/dead-letters",
  // A browser's page may add one, to get past a cache.
  "/openapi.json",
]);

/** On a write they would seem to say which records are meant, or what the answer holds. */
const ofLists = /^(filter|sort|fields|include|cursor|count)(\[|$)/;

/**
 * Refuses the parameters of a request that takes none, as one for a single record. Of a write, it
 * refuses those that lists have: others mean nothing anywhere, and are ignored.
 *
 * @throws AppError `validation.failed`, by the parameter as it was written.
 */
export function refuseParameters({ method, querystring }: Pick<ApiContext, "method" | "querystring">): void {
  const isRead = method === "GET" || method === "HEAD";
  const names = readQuery(querystring).map(({ name }) => name);
  const refused = names.filter((name) => isRead || ofLists.test(name));
  if (refused.length > 0)
    throw validationError(Object.fromEntries(refused.map((name) => [name, [faultOf(name)]])));
}

function faultOf(name: string): string {
  return name === ""
    ? "A parameter has no name."
    : `There is no parameter ${shortened(name)} here; only lists take parameters.`;
}

/** Has every read of a router refuse parameters, but for those that take some. */
export function guardParameters(router: ApiRouter, routePrefix: string): void {
  for (const layer of router.stack) {
    if (!layer.methods.includes("GET") || readers.has(String(layer.path).slice(routePrefix.length))) continue;
    const check: ApiMiddleware = (ctx, next) => {
      refuseParameters(ctx);
      return next();
    };
    layer.stack.unshift(check);
  }
}
