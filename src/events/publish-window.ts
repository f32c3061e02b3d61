import type { OutboxEvent } from "./outbox.ts";

type WindowedEvent = Pick<OutboxEvent, "id" | "uuid" | "transaction" | "resource" | "bytes">;

/** Events that are being published, or were and are not known to be fanned out. What waits beyond stays in the outbox: there it costs the broker and the dispatchers no memory. */
export interface PublishWindow {
  has(id: string): boolean;
  get(id: string): WindowedEvent | undefined;
  ids(): readonly string[];
  /** Ids of those of a transaction from this one on. */
  idsSince(transaction: bigint): readonly string[];
  hasRoom(): boolean;
  /** Whether there is room for a backlog: most of the window is for what is new, which would have to wait behind it in the broker's one queue. */
  hasRoomToCatchUp(): boolean;
  /** For how many events and bytes there is room. */
  room(): { readonly events: number; readonly bytes: number };
  enter(event: WindowedEvent): void;
  leave(id: string): void;
  /**
   * Learns which of the events asked about are still in the outbox. Those that have been out of it for long enough leave; answers their ids.
   */
  note(asked: ReadonlySet<string>, waiting: ReadonlySet<string>): readonly string[];
  /** Ids of those still in the outbox that entered so long ago. */
  olderThan(ms: number): readonly string[];
}

interface Entry {
  readonly event: WindowedEvent;
  readonly sinceMs: number;
  /** Since when it has been out of the outbox: it takes no room any more. */
  goneSinceMs: number | undefined;
}

const mostEvents = 1_000;
const mostBytes = 4 * 1024 ** 2;
/**
 * A crash of the database can bring an event back that was gone, when the commit that took it out was not on disk yet (where
 * `synchronous_commit` is off: for three times `wal_writer_delay`, 0.6 s).
 */
const sureAfterMs = 2_000;

/** @param now In ms, never going back. */
export function createPublishWindow({ now }: { readonly now: () => number }): PublishWindow {
  const entries = new Map<string, Entry>();
  let count = 0;
  let bytes = 0;

  function countIn({ event }: Entry, direction: 1 | -1): void {
    count += direction;
    bytes += direction * event.bytes;
  }

  function leave(id: string): void {
    const entry = entries.get(id);
    if (entry === undefined) return;
    entries.delete(id);
    if (entry.goneSinceMs === undefined) countIn(entry, -1);
  }

  return {
    has: (id) => entries.has(id),
    get: (id) => entries.get(id)?.event,
    ids: () => [...entries.keys()],
    idsSince: (transaction) =>
      [...entries].filter(([, { event }]) => BigInt(event.transaction) >= transaction).map(([id]) => id),
    hasRoom: () => count < mostEvents && bytes < mostBytes,
    hasRoomToCatchUp: () => count < mostEvents / 5 && bytes < mostBytes / 4,
    room: () => ({ events: mostEvents - count, bytes: mostBytes - bytes }),
    enter({ id, uuid, transaction, resource, bytes: size }) {
      leave(id);
      const event = { id, uuid, transaction, resource, bytes: size };
      const entry = { event, sinceMs: now(), goneSinceMs: undefined };
      entries.set(id, entry);
      countIn(entry, 1);
    },
    leave,
    note(asked, waiting) {
      const left: string[] = [];
      for (const [id, entry] of entries) {
        if (!asked.has(id)) continue;
        if (waiting.has(id)) {
          if (entry.goneSinceMs !== undefined) countIn(entry, 1);
          entry.goneSinceMs = undefined;
        } else if (entry.goneSinceMs === undefined) {
          countIn(entry, -1);
          entry.goneSinceMs = now();
        } else if (now() - entry.goneSinceMs > sureAfterMs) {
          leave(id);
          left.push(id);
        }
      }
      return left;
    },
    olderThan: (ms) =>
      [...entries]
        .filter(([, { sinceMs, goneSinceMs }]) => goneSinceMs === undefined && now() - sinceMs > ms)
        .map(([id]) => id),
  };
}
