import { validationError } from "../kit/errors.ts";
import { shortened } from "../kit/did-you-mean.ts";
import type { ApiContext, ApiMiddleware, ApiRouter } from "./state.ts";
import { isForeign } from "./unknown-parameter.ts";

/** Paths below the prefix of lists, and of reads whose handlers check the parameters. */
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
]);

/** Parameters of lists. A client that sends one elsewhere expects it to change the answer. */
const ofLists = /^(filter|sort|fields|include|cursor|count|page|per_page|search)(\[|$)/;

/**
 * Refuses the parameters of lists on requests for anything else, also those of other APIs, such as
 * `limit`. Other parameters have no meaning, and are ignored.
 *
 * @throws AppError `validation.failed`, by the parameter as it was written.
 */
export function refuseParameters({ querystring }: Pick<ApiContext, "querystring">): void {
  if (querystring === "") return;
  const refused = new Set<string>();
  // Works for any number of parameters, in any spelling.
  for (const part of querystring.split("&")) {
    const name = nameOf(part);
    if (ofLists.test(name) || isForeign(name)) refused.add(name);
    if (refused.size === mostNamed) break;
  }
  if (refused.size === 0) return;
  throw validationError(Object.fromEntries([...refused].map((name) => [name, [messageFor(name)]])));
}

function messageFor(name: string): string {
  const reason = ofLists.test(name) ? "only lists take it" : "this request takes none";
  return `There is no parameter ${shortened(name)} here; ${reason}.`;
}

/**
 * Limit of the parameters in an error: 1,800 parameters of one request made an answer of 120 KB.
 */
const mostNamed = 20;

/** Decodes only encoded names: a request may have 1,800 parameters, which took 0.6 ms. */
function nameOf(part: string): string {
  const end = part.indexOf("=");
  const name = end === -1 ? part : part.slice(0, end);
  return name.includes("%") || name.includes("+")
    ? (new URLSearchParams(name).keys().next().value ?? "")
    : name;
}

/** Makes every route of a router refuse parameters of lists, except lists. */
export function guardParameters(router: ApiRouter, routePrefix: string): void {
  for (const layer of router.stack) {
    const isRead = layer.methods.includes("GET");
    if (isRead && readers.has(String(layer.path).slice(routePrefix.length))) continue;
    const check: ApiMiddleware = (ctx, next) => {
      refuseParameters(ctx);
      return next();
    };
    layer.stack.unshift(check);
  }
}
