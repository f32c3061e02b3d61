import type { OutboxCursor } from "../../src/events/outbox-cursor.ts";

/** Returns the id of the first transaction that the next read for new events covers. */
export function firstNew(cursor: OutboxCursor): bigint {
  const [scan] = cursor.scans(["notes"], false);
  return (scan?.range.from.transaction ?? 0n) + 1n;
}
