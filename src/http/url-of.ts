import type { Config } from "../config/load.ts";
import { isHost, isLoopback } from "../kit/host.ts";
import type { ApiContext } from "./state.ts";
import { parseUrl } from "../kit/parse-url.ts";

/** Limit in characters. This server accepts 16 KiB of request line and headers. */
const longestEncoded = 12_000;

/** Returns the absolute URL of a request. */
export type UrlOf = (ctx: ApiContext) => URL;

/**
 * Creates a function that returns the absolute URLs of requests. Without a `publicUrl` they begin
 * with the request's protocol and its `Host` header, which any client can forge. Only a host among
 * `hosts` is taken from the header; the first one replaces every other.
 *
 * @param publicUrl Origin that clients use; it takes precedence.
 * @param hosts Hosts in lower case; a host without a port holds for every port. Empty: every host
 *   is allowed, and the local address replaces a text that is no host.
 */
export function createUrlOf({ publicUrl, hosts }: Pick<Config["http"], "publicUrl" | "hosts">): UrlOf {
  return (ctx) => {
    const url = new URL(publicUrl ?? originOf(ctx, hosts));
    // Set one by one, because resolving `//host/...` against a base would leave the origin.
    url.pathname = ctx.path;
    // Clients may send these characters unencoded, such as the brackets of a filter. The query of a
    // URI may not contain them, or a % that encodes nothing.
    const encoded = ctx.querystring.replaceAll(/[[\]\\^`{|}]|%(?![\da-f]{2})/gi, encodeURIComponent);
    url.search = encoded.length <= longestEncoded ? encoded : ctx.querystring;
    return url;
  };
}

/** Returns the absolute URL of an item in the collection of a request. */
export function urlBelow(collection: URL, id: string | number): string {
  return urlAt(collection, encodeURIComponent(id));
}

/** Does the same for the last part of the item's path, which is percent-encoded already. */
export function urlAt(collection: URL, last: string): string {
  return `${collection.origin}${withoutSlashes(collection.pathname)}/${last}`;
}

/**
 * Sets a parameter, and leaves the others as they are. An encoded comma takes three characters, so
 * the link could be longer than a server accepts.
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
}: Pick<Config["http"], "host" | "publicUrl" | "hosts">): string | undefined {
  if (publicUrl !== undefined || hosts.length > 0 || isLoopback(host)) return undefined;
  return (
    "neither http.publicUrl (SVC_PUBLIC_URL) nor http.hosts is set: next_page_url and prev_page_url lead to the host that the request names. " +
    "With a forged Host header, links to another site can get into a shared cache or to people; set one of the two"
  );
}

/**
 * Removes slashes at the end. Scans from the end, because the time of a pattern grows with the
 * square of the slashes.
 */
function withoutSlashes(path: string): string {
  let end = path.length;
  while (end > 0 && path.charAt(end - 1) === "/") end -= 1;
  return path.slice(0, end);
}
