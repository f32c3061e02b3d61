/**
 * Formats a date as ISO 8601 in UTC, with milliseconds and an offset:
 * `2026-03-28T14:30:00.123+00:00`.
 */
export function formatDateTime(date: Date): string {
  return `${date.toISOString().slice(0, -1)}+00:00`;
}
