import { isContainer } from "./body-paths.ts";

/** Objects and arrays within one another, the value of a field being level 1. Keeps every later walk off the stack's end. */
export const maxDepth = 64;

/** As in the reference, a password may begin or end with a space. Longer texts are none, and 500 KB of blanks would be trimmed at every look. */
const maxPasswordLength = 1000;
const passwords: ReadonlySet<string> = new Set(["current_password", "password", "password_confirmation"]);

/**
 * Trims every text of a body, the ones inside nested values included, and turns blank ones into null, as the
 * reference does before it validates.
 *
 * @returns The cleaned copy, without the fields named in `tooDeep`: those nested beyond `maxDepth`.
 */
export function cleanBody(body: Readonly<Record<string, unknown>>): {
  readonly body: Readonly<Record<string, unknown>>;
  readonly tooDeep: ReadonlySet<string>;
} {
  const entries = Object.entries(body);
  const tooDeep = new Set(entries.filter(([, value]) => isDeeperThan(value, maxDepth)).map(([key]) => key));
  const kept = entries.filter(([key]) => !tooDeep.has(key));
  return {
    // fromEntries defines properties, so a key `__proto__` becomes one like any other.
    body: Object.fromEntries(
      kept.map(([key, value]) => [key, isPassword(key, value) ? value : clean(value)]),
    ),
    tooDeep,
  };
}

function isPassword(key: string, value: unknown): boolean {
  return passwords.has(key) && typeof value === "string" && value.length <= maxPasswordLength;
}

/** Whether arrays and objects stand in one another more than `levels` deep. Never recurses deeper than that. */
export function isDeeperThan(value: unknown, levels: number): boolean {
  if (!isContainer(value)) return false;
  return levels === 0 || Object.values(value).some((item) => isDeeperThan(item, levels - 1));
}

function clean(value: unknown): unknown {
  if (typeof value === "string") return value.trim() || null;
  if (Array.isArray(value)) return value.map(clean);
  if (!isContainer(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, clean(item)]));
}
