import { hash } from "node:crypto";
import { randomBase62 } from "../kit/base62.ts";

const randomLength = 43;

/**
 * Pattern of tokens. Other programs may issue longer ones. The upper limit keeps a request from
 * costing a hash of megabytes.
 */
const tokenPattern = /^svc_[0-9A-Za-z]{40,200}$/;

/** Pattern of the compact form of a signed JWT: header, claims and signature in base64url. */
const jwtPattern = /^[\w-]+\.[\w-]+\.[\w-]+$/;

/** Limit in characters of a JWT: its claims then take at most 6 KiB. */
const longestJwt = 8192;

/** Pattern of RFC 9110, section 11.4: the scheme in any case, one or more spaces, and a token68. */
const bearerPattern = /^bearer(?: +(.*))?$/i;

/** Creates an access token: `svc_` and 43 random base62 characters, 256 bits. */
export function mintToken(): string {
  return `svc_${randomBase62(randomLength)}`;
}

/** Returns whether a text can be a token. Any other text is refused without a query. */
export function isToken(text: string): boolean {
  return tokenPattern.test(text);
}

/**
 * Returns the SHA-256 of the whole token, the only stored form. A random token needs neither salt
 * nor stretching.
 */
export function hashToken(token: string): Buffer {
  return hash("sha256", token, "buffer");
}

/** The credentials of a request. `malformed`: the text after `Bearer` is not a token. */
export type Credentials =
  | { readonly kind: "missing" | "malformed" }
  | { readonly kind: "token"; readonly token: string }
  /** A token in the form of a JWT (RFC 7519); it is not verified yet. */
  | { readonly kind: "jwt"; readonly token: string };

/**
 * Reads the `Authorization` headers of a request. Another scheme counts as a missing token. More
 * than one header is malformed, since proxies differ in the one that they use.
 *
 * @param headers Value of each header, in order; undefined without one.
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
