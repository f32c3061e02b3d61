import { parseSnapshot, type TransactionSnapshot } from "../events/outbox-cursor.ts";

/**
 * Snapshot and time of a database answer. A later statement uses them to check whether the answer
 * still holds.
 */
export interface KnownAt {
  /** The answer's snapshot, in the text format of PostgreSQL. */
  readonly snapshot: string;
  /** The database's time of day before the snapshot, in ms since 1970. */
  readonly readAtMs: number;
}

/** Rows that the database returned for some queries, and when. */
interface KnownRows<Row> {
  readonly rows: readonly Row[];
  /** When the oldest of the answers was read. */
  readonly knownAt: KnownAt;
}

/**
 * A cache of the database's answers, by the keys of the queries. Bounded in time, entries and
 * bytes.
 */
export interface KnownSubscribers<Row> {
  /** Returns the rows of all answers, each once; undefined when an answer is missing. */
  find(keys: readonly string[]): KnownRows<Row> | undefined;
  /**
   * Caches the small answers.
   *
   * @param askedAtMs Time before the database was asked, by the clock of this process.
   */
  keep(
    answers: Iterable<readonly [key: string, rows: readonly Row[]]>,
    given: { readonly knownAt: KnownAt; readonly askedAtMs: number },
  ): void;
  /** Drops all answers, and returns none for a moment, because more changes may follow. */
  forget(): void;
}

/**
 * How long an answer is kept. The write checks that no subscription and no user has changed. It
 * does not see that a time limit has passed: of a previous secret, or of holding deliveries. Both
 * last hours, so a second does not matter.
 */
const keepForMs = 1_000;
/**
 * Time after a change for which no answer is returned. Without it, a user who keeps changing
 * webhooks would make each write of all users fail once.
 */
const restMs = 100;
const mostRows = 100;
const mostEntries = 5_000;
const mostBytes = 16 * 1024 ** 2;
/** Approximate bytes of an entry without rows. */
const entryBytes = 300;

interface Entry<Row> {
  readonly rows: readonly Row[];
  readonly bytes: number;
  readonly knownAt: KnownAt;
  readonly snapshot: TransactionSnapshot;
  readonly endsAtMs: number;
}

/**
 * Creates an empty cache for one configuration, because another configuration makes other queries.
 */
export function createKnownSubscribers<Row>({
  idOf,
  bytesOf,
  now,
}: {
  readonly idOf: (row: Row) => number;
  /** Returns the approximate bytes of a row in memory. */
  readonly bytesOf: (row: Row) => number;
  /** Monotonic clock, in ms. */
  readonly now: () => number;
}): KnownSubscribers<Row> {
  // An answer that is read again from the database moves to the end: the first are the oldest.
  const entries = new Map<string, Entry<Row>>();
  let bytes = 0;
  let restsUntilMs = -Infinity;

  function drop(key: string): void {
    bytes -= entries.get(key)?.bytes ?? 0;
    entries.delete(key);
  }

  function dropOldest(): void {
    for (const key of entries.keys()) {
      if (entries.size <= mostEntries && bytes <= mostBytes) return;
      drop(key);
    }
  }

  return {
    find(keys) {
      const nowMs = now();
      if (nowMs < restsUntilMs) return undefined;
      let oldest: Entry<Row> | undefined;
      const rows = new Map<number, Row>();
      for (const key of keys) {
        const entry = entries.get(key);
        if (entry === undefined || entry.endsAtMs <= nowMs) return undefined;
        if (oldest === undefined || isOlder(entry.snapshot, oldest.snapshot)) oldest = entry;
        for (const row of entry.rows) rows.set(idOf(row), row);
      }
      if (oldest === undefined) return undefined;
      const inOrder = [...rows].toSorted(([one], [other]) => one - other).map(([, row]) => row);
      return { rows: inOrder, knownAt: oldest.knownAt };
    },
    keep(answers, { knownAt, askedAtMs }) {
      const snapshot = parseSnapshot(knownAt.snapshot);
      for (const [key, rows] of answers) {
        drop(key);
        if (rows.length > mostRows) continue;
        const size = rows.reduce((sum, row) => sum + bytesOf(row), entryBytes + 2 * key.length);
        entries.set(key, { rows, bytes: size, knownAt, snapshot, endsAtMs: askedAtMs + keepForMs });
        bytes += size;
      }
      dropOldest();
    },
    forget() {
      entries.clear();
      bytes = 0;
      restsUntilMs = now() + restMs;
    },
  };
}

/**
 * Compares snapshots of one database. The older one sees a part of what the other sees, because
 * fewer transactions had ended. Its end is lower, or more transactions below the end were running.
 */
function isOlder(one: TransactionSnapshot, other: TransactionSnapshot): boolean {
  return one.xmax === other.xmax ? one.running.size > other.running.size : one.xmax < other.xmax;
}
