/**
 * Returns the id of a user, token or subscription: a positive 32-bit integer in plain decimal
 * digits. Returns undefined for anything else.
 */
export function idOf(text: string | null | undefined): number | undefined {
  const id = typeof text === "string" && /^[1-9]\d{0,9}$/.test(text) ? Number(text) : Number.NaN;
  return id < 2 ** 31 ? id : undefined;
}

/**
 * Returns the id of an event, delivery or replay: a positive 64-bit integer in plain decimal
 * digits. Returns undefined for any other text.
 */
export function rowIdOf(text: string | undefined): string | undefined {
  if (text === undefined || !/^[1-9]\d{0,18}$/.test(text)) return undefined;
  return BigInt(text) < 2n ** 63n ? text : undefined;
}

/** Returns whether the text is a UUID of any version, in its usual form with hyphens. */
export function isUuid(text: string): boolean {
  return /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);
}
