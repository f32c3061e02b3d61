/**
 * Returns the id of a user, token or subscription: a positive 32-bit integer in plain decimal
 * digits. Returns undefined for any other text.
 */
export function idOf(text: string | undefined): number | undefined {
  const id = text !== undefined && /^[1-9]\d{0,9}$/.test(text) ? Number(text) : Number.NaN;
  return id < 2 ** 31 ? id : undefined;
}
