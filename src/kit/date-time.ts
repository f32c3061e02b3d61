/**
 * Formats a date as ISO 8601 in UTC, with milliseconds and an offset:
 * `2026-03-28T14:30:00.123+00:00`. Null stays null.
 */
export function formatDateTime(date: Date): string;
export function formatDateTime(date: Date | null): string | null;
export function formatDateTime(date: Date | null): string | null {
  return date && `${date.toISOString().slice(0, -1)}+00:00`;
}
