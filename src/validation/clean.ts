import { isDeeperThan } from "../kit/depth.ts";
import { isContainer } from "./body-paths.ts";

/**
 * Limit of the levels of nested objects and arrays; the value of a field is level 1. Keeps every
 * later recursion within the stack.
 */
export const maxDepth = 64;

/**
 * Limit of the length of a password, which may start or end with a space, as in Laravel. Longer
 * texts are not passwords: 500 KB of blanks would be trimmed at every check.
 */
const maxPasswordLength = 1000;
const passwords: ReadonlySet<string> = new Set(["current_password", "password", "password_confirmation"]);

/**
 * Trims every text of a body, nested ones included, and turns blank texts into null. Laravel does
 * this before it validates.
 *
 * @returns The cleaned copy, without the fields in `tooDeep`, which are nested beyond `maxDepth`.
 */
export function cleanBody(body: Readonly<Record<string, unknown>>): {
  readonly body: Readonly<Record<string, unknown>>;
  readonly tooDeep: ReadonlySet<string>;
} {
  const entries = Object.entries(body);
  const tooDeep = new Set(entries.filter(([, value]) => isDeeperThan(value, maxDepth)).map(([key]) => key));
  const kept = entries.filter(([key]) => !tooDeep.has(key));
  return {
    // fromEntries defines properties, so that `__proto__` becomes an ordinary key.
    body: Object.fromEntries(
      kept.map(([key, value]) => [key, isPassword(key, value) ? value : clean(value)]),
    ),
    tooDeep,
  };
}

function isPassword(key: string, value: unknown): boolean {
  if (!passwords.has(key) || typeof value !== "string" || value.length > maxPasswordLength) return false;
  // A blank text is not a password: it would skip every rule but those of presence, including
  // `min`.
  return value.trim() !== "";
}

function clean(value: unknown): unknown {
  if (typeof value === "string") return value.trim() || null;
  if (Array.isArray(value)) return value.map(clean);
  if (!isContainer(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, clean(item)]));
}
