import { createHash, randomInt } from "node:crypto";

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const randomLength = 43;

/** Longer ones than are minted here may come from elsewhere (contract, section 8: "40 or more"); the end keeps a request from costing a hash of megabytes. */
const tokenPattern = /^svc_[0-9A-Za-z]{40,200}$/;

/** The compact form of a signed one: header, claims and signature in base64url. */
const jwtPattern = /^[\w-]+\.[\w-]+\.[\w-]+$/;

/** Characters, so that its claims take at most 6 KiB. Issuers that write long lists of groups have a way to leave them out. */
const longestJwt = 8192;

/** RFC 9110, 11.4: the scheme, in any case, one or more spaces, and a token68. */
const bearerPattern = /^bearer(?: +(.*))?$/i;

/** A new access token: `svc_` and 43 random base62 characters, 256 bits. */
export function mintToken(): string {
  // randomInt, since the remainder of a random byte would favour the first characters.
  const characters = Array.from({ length: randomLength }, () => alphabet.charAt(randomInt(alphabet.length)));
  return `svc_${characters.join("")}`;
}

/** Whether a text can be a token at all, so that anything else is refused without a query. */
export function isToken(text: string): boolean {
  return tokenPattern.test(text);
}

/** SHA-256 of the whole token, which is all that is stored. A token is random, so neither salt nor stretching would add anything. */
export function hashToken(token: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(createHash("sha256").update(token, "utf8").digest());
}

/** What a request shows of a token. `malformed` carries something after `Bearer` that is not one. */
export type Credentials =
  | { readonly kind: "missing" }
  | { readonly kind: "malformed" }
  | { readonly kind: "token"; readonly token: string }
  /** Written as a JWT is (RFC 7519), and no more is known of it. */
  | { readonly kind: "jwt"; readonly token: string };

/**
 * Reads the `Authorization` headers of a request. Another scheme, or none, counts as no token; more than one header as
 * malformed, since proxies differ in which of them they believe.
 *
 * @param headers Each header's value, in order; undefined when there is none.
 */
export function parseBearer(headers: readonly string[] | undefined): Credentials {
  const [header, ...others] = headers ?? [];
  if (header === undefined) return { kind: "missing" };
  if (others.length > 0) return { kind: "malformed" };
  const match = bearerPattern.exec(header.trim());
  const token = match?.[1];
  if (token === undefined) return { kind: "missing" };
  if (isToken(token)) return { kind: "token", token };
  return token.length <= longestJwt && jwtPattern.test(token)
    ? { kind: "jwt", token }
    : { kind: "malformed" };
}
