/**
 * Returns the text at a path within JSON, like PostgreSQL's `#>>` for `jsonb`. Returns null for
 * null or a missing value.
 *
 * @param spend Called before each part with its steps; it may throw.
 */
export function jsonbText(
  value: unknown,
  path: readonly string[],
  spend: (steps: number) => void,
): string | null {
  spend(10 * path.length);
  let found = value;
  for (const key of path) {
    if (Array.isArray(found)) {
      if (!/^-?\d{1,9}$/.test(key)) return null;
      found = found.at(Number(key));
    } else if (typeof found === "object" && found !== null && Object.hasOwn(found, key))
      found = (found as Readonly<Record<string, unknown>>)[key];
    else return null;
  }
  if (found === null || found === undefined) return null;
  return typeof found === "string" ? found : textOf(found, spend);
}

/** Writes a value as text. Keys are in the order of `jsonb`: shorter keys first, then by bytes. */
function textOf(value: unknown, spend: (steps: number) => void): string {
  spend(20 + (typeof value === "string" ? 4 * value.length : 0));
  if (Array.isArray(value)) return `[${value.map((one) => textOf(one, spend)).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  spend(150);
  const entries = Object.entries(value).map(([key, one]) => {
    spend(200 + 4 * key.length);
    return { key, bytes: Buffer.from(key), one };
  });
  const sorted = entries.toSorted(
    (a, b) => a.bytes.length - b.bytes.length || Buffer.compare(a.bytes, b.bytes),
  );
  return `{${sorted.map(({ key, one }) => `${JSON.stringify(key)}: ${textOf(one, spend)}`).join(", ")}}`;
}
