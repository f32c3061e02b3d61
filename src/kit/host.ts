import ipaddr from "ipaddr.js";

/**
 * A name or an address, with or without a port, as in a `Host` header (RFC 9110, 7.2). Excludes the
 * characters of RFC 3986 that no real host has.
 */
const hostPattern = /^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?$/;

/** Limit in characters, above any DNS name (253 characters) with a port. */
const longestHost = 260;

/** Returns whether a text is a host, with or without a port. */
export function isHost(text: string): boolean {
  return text.length <= longestHost && hostPattern.test(text);
}

/** Networks of the machine itself. */
export const loopbackNetworks: readonly string[] = ["127.0.0.0/8", "::1/128"];

/**
 * Returns whether only this machine can reach a server that listens on the host, an address or a
 * name.
 */
export function isLoopback(host: string): boolean {
  if (/^localhost\.?$/i.test(host)) return true;
  return ipaddr.isValid(host) && ipaddr.process(host).range() === "loopback";
}

/**
 * Returns whether a server that listens on the host can be reached at every address of the machine.
 */
export function isEverywhere(host: string): boolean {
  return host === "0.0.0.0" || host === "::";
}

/** Returns the address at which this machine reaches a server that listens on the host. */
export function ownAddress(host: string): string {
  if (!isEverywhere(host)) return host;
  return host === "::" ? "::1" : "127.0.0.1";
}

/** Returns a host in the form of a URL: an IPv6 address is in brackets. */
export function hostInUrl(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}
