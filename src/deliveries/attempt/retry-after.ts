/**
 * Reads a Retry-After header (RFC 9110, 10.2.3). Pure.
 *
 * @returns Seconds from `now`, 0 for a date that has passed; undefined for a missing or unusable header.
 */
export function parseRetryAfter(header: string | undefined, now: Date): number | undefined {
  const value = header?.trim() ?? "";
  if (/^\d{1,10}$/.test(value)) return Number(value);
  // Date.parse alone would also take "1.5" for a day in January, and read the third, obsolete date format as local time.
  const time = /^[A-Z][a-z]+, .+ GMT$/.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(time) ? undefined : Math.max(0, Math.ceil((time - now.getTime()) / 1000));
}
