import type { OutboxEvent } from "./outbox.ts";

type WindowedEvent = Pick<OutboxEvent, "id" | "uuid" | "transaction" | "resource" | "bytes">;

/**
 * Events in flight: being published, or published and not known to be fanned out. The others stay
 * in the outbox, where they take no memory of the broker and the dispatchers.
 */
export interface PublishWindow {
  has(id: string): boolean;
  get(id: string): WindowedEvent | undefined;
  ids(): readonly string[];
  /** Returns the ids of events whose transaction is this one or a later one. */
  idsSince(transaction: bigint): readonly string[];
  hasRoom(): boolean;
  /**
   * Returns whether there is room for old events. Most of the window is for new ones, which would
   * wait behind a backlog in the broker's one queue.
   */
  hasRoomToCatchUp(): boolean;
  /** Returns how many more events and bytes fit. */
  room(): { readonly events: number; readonly bytes: number };
  enter(event: WindowedEvent): void;
  leave(id: string): void;
  /**
   * Records which of the asked events are still in the outbox. Removes events that have been out of
   * it for long enough, and returns their ids.
   */
  note(asked: ReadonlySet<string>, waiting: ReadonlySet<string>): readonly string[];
  /** Returns the ids of events that are still in the outbox after this time. */
  olderThan(ms: number): readonly string[];
}

interface Entry {
  readonly event: WindowedEvent;
  readonly transaction: bigint;
  readonly sinceMs: number;
  /** Time at which the event left the outbox; from then on it takes no room. */
  goneSinceMs: number | undefined;
}

const mostEvents = 1_000;
const mostBytes = 4 * 1024 ** 2;
/**
 * A crash of the database can bring an event back: the commit that removed it may not be on disk.
 * Without `synchronous_commit` that takes three times `wal_writer_delay`, 0.6 s.
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
    // Asked before each read of the outbox, with up to 2 s of published events in the window.
    idsSince(least) {
      const found: string[] = [];
      for (const [id, { transaction }] of entries) if (transaction >= least) found.push(id);
      return found;
    },
    hasRoom: () => count < mostEvents && bytes < mostBytes,
    hasRoomToCatchUp: () => count < mostEvents / 5 && bytes < mostBytes / 4,
    room: () => ({ events: mostEvents - count, bytes: mostBytes - bytes }),
    enter({ id, uuid, transaction, resource, bytes: size }) {
      leave(id);
      const event = { id, uuid, transaction, resource, bytes: size };
      const entry = {
        event,
        transaction: BigInt(transaction),
        sinceMs: now(),
        goneSinceMs: undefined,
      };
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
