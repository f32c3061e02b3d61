/** ISO 8601 with milliseconds and an offset, always UTC: `2026-03-28T14:30:00.123+00:00` (contract, section 4). */
export function formatDateTime(date: Date): string {
  return `${date.toISOString().slice(0, -1)}+00:00`;
}
