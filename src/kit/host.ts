import ipaddr from "ipaddr.js";

/** A name or an address, with or without a port: what a `Host` header may hold (RFC 9110, 7.2), less the characters that no host has. */
const hostPattern = /^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?$/;

/** Longer than any DNS name (253 characters) with a port. */
const longestHost = 260;

export function isHost(text: string): boolean {
  return text.length <= longestHost && hostPattern.test(text);
}

/** Networks that stay on the machine. */
export const loopbackNetworks: readonly string[] = ["127.0.0.0/8", "::1/128"];

/** Whether what listens on a host, an address or a name, is reached from its own machine only. */
export function isLoopback(host: string): boolean {
  if (/^localhost\.?$/i.test(host)) return true;
  return ipaddr.isValid(host) && ipaddr.process(host).range() === "loopback";
}

/** Whether what listens on a host is reached at every address of its machine. */
export function isEverywhere(host: string): boolean {
  return host === "0.0.0.0" || host === "::";
}

/** Where a program of the same machine reaches what listens on a host. */
export function ownAddress(host: string): string {
  if (!isEverywhere(host)) return host;
  return host === "::" ? "::1" : "127.0.0.1";
}

/** A host as it stands in a URL: an IPv6 address in brackets. */
export function hostInUrl(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}
