import { randomInt } from "node:crypto";

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** Returns random base62 characters, 5.95 bits each. */
export function randomBase62(length: number): string {
  // Uses randomInt, since the remainder of a random byte would favour the first characters.
  return Array.from({ length }, () => alphabet.charAt(randomInt(alphabet.length))).join("");
}
