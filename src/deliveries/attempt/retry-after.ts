/**
 * Parses a Retry-After header (RFC 9110, 10.2.3). Pure.
 *
 * @returns Seconds from `now`: 0 for a past date, Infinity for a number that is too large,
 *   undefined for a missing or unusable header.
 */
export function parseRetryAfter(header: string | undefined, now: Date): number | undefined {
  const value = header?.trim() ?? "";
  if (/^\d+$/.test(value)) return Number(value);
  // Date.parse alone would read "1.5" as a day in January, and the obsolete third date format as
  // local time.
  const time = /^[A-Z][a-z]+, .+ GMT$/.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(time) ? undefined : Math.max(0, Math.ceil((time - now.getTime()) / 1000));
}
