import { isHost, isLoopback } from "../kit/host.ts";
import type { ApiContext } from "./state.ts";
import { parseUrl } from "../kit/parse-url.ts";

/** The absolute URL of a request. */
export type UrlOf = (ctx: ApiContext) => URL;

/**
 * Makes the absolute URLs of requests. Without a `publicUrl` they begin with the request's protocol
 * and its `Host` header, which any client can forge. Only a host among `hosts` is taken from there;
 * the first of them stands for every other.
 *
 * @param publicUrl Origin that clients use; it wins.
 * @param hosts Lower case; one without a port holds for every port. None: every host, and the
 *   local address for a text that is no host.
 */
export function createUrlOf({
  publicUrl,
  hosts,
}: {
  readonly publicUrl: string | undefined;
  readonly hosts: readonly string[];
}): UrlOf {
  return (ctx) => {
    const url = new URL(publicUrl ?? originOf(ctx, hosts));
    // Set one by one: resolving `//host/...` against a base would leave the origin.
    url.pathname = ctx.path;
    url.search = ctx.querystring;
    return url;
  };
}

/** Returns the absolute URL of something in the collection that a request is for. */
export function urlBelow(collection: URL, id: string | number): string {
  return urlAt(collection, encodeURIComponent(id));
}

/** Does the same for the last part of its path, which is percent-encoded already. */
export function urlAt(collection: URL, last: string): string {
  return `${collection.origin}${withoutSlashes(collection.pathname)}/${last}`;
}

/**
 * Sets a parameter, and leaves the others as the client wrote them: a comma or a bracket that is
 * encoded takes three characters. The link could then be longer than a server takes.
 */
export function setParameter(url: URL, name: string, value: string): void {
  const isIt = (part: string): boolean => new URLSearchParams(`&${part}`).has(name);
  const parts = url.search.slice(1).split("&");
  const at = parts.findIndex(isIt);
  const others = parts.filter((part) => part !== "" && !isIt(part));
  others.splice(at === -1 ? others.length : at, 0, `${name}=${encodeURIComponent(value)}`);
  url.search = others.join("&");
}

function originOf(ctx: ApiContext, hosts: readonly string[]): string {
  const host = ctx.host.toLowerCase();
  const isKnown = hosts.some((known) => known === host || known === host.replace(/:\d+$/, ""));
  const origin = `${ctx.protocol}://${host}`;
  if ((isKnown || hosts.length === 0) && isHost(host) && parseUrl(origin) !== undefined) return origin;
  return `${ctx.protocol}://${hosts[0] ?? `localhost:${ctx.req.socket.localPort ?? 80}`}`;
}

/**
 * Returns the warning at start that page links lead to any host that a request names. Undefined
 * when they do not, or when only this machine can send requests.
 */
export function openHostsWarning({
  host,
  publicUrl,
  hosts,
}: {
  /** That the API listens on. */
  readonly host: string;
  readonly publicUrl: string | undefined;
  readonly hosts: readonly string[];
}): string | undefined {
  if (publicUrl !== undefined || hosts.length > 0 || isLoopback(host)) return undefined;
  return (
    "neither http.publicUrl (SVC_PUBLIC_URL) nor http.hosts is set: next_page_url and prev_page_url lead to the host that the request names. " +
    "With a forged Host header, links to another site can get into a shared cache or to people; set one of the two"
  );
}

/** Counts from the end: a pattern would take time with the square of the slashes. */
function withoutSlashes(path: string): string {
  let end = path.length;
  while (end > 0 && path.charAt(end - 1) === "/") end -= 1;
  return path.slice(0, end);
}
