/** A name or an address, with or without a port: what a `Host` header may hold (RFC 9110, 7.2), less the characters that no host has. */
const hostPattern = /^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?$/;

/** Longer than any DNS name (253 characters) with a port. */
const longestHost = 260;

export function isHost(text: string): boolean {
  return text.length <= longestHost && hostPattern.test(text);
}
