/** Where an event is in the order in which a resource's part of the outbox is read. Both are decimal numbers in JavaScript's bigint. */
export interface Position {
  readonly transaction: bigint;
  readonly event: bigint;
}

/** Events of one resource after `from`, up to `to` inclusive. */
export interface Range {
  readonly from: Position;
  readonly to: Position;
}

/** What PostgreSQL says of transactions at one moment (`pg_current_snapshot`). */
export interface Snapshot {
  /** All transactions from this one on are not visible. */
  readonly xmax: bigint;
  /** Of those below, the ones that are still at work. */
  readonly running: ReadonlySet<bigint>;
}

/** One read of a resource: at most `limit` of the events in `range`. */
export interface Scan {
  readonly resource: string;
  readonly range: Range;
}

/** What a scan came to. */
export interface Scanned {
  readonly scan: Scan;
  /** The last event that was taken; undefined when none was. */
  readonly last: Position | undefined;
  /** Whether the range may hold more that is visible. */
  readonly hasMore: boolean;
}

const last: Position = { transaction: 2n ** 62n, event: 2n ** 62n };
export const beginning: Position = { transaction: 0n, event: 0n };

/** A transaction that takes longer is looked for by itself when it ends, and not by every read. */
const youngReads = 10;
const youngTransactions = 5_000n;
/** More are joined: what is read twice is told apart by its id. */
const mostRanges = 8;

/** Reads `xmin:xmax:xip_list`. */
export function parseSnapshot(text: string): Snapshot {
  const [, xmax = "0", running = ""] = text.split(":");
  return {
    xmax: BigInt(xmax),
    running: new Set(running === "" ? [] : running.split(",").map((id) => BigInt(id))),
  };
}

/**
 * Reads every event of the outbox that becomes visible, in whatever order transactions commit, without passing again what it has
 * passed: not the rows that are at work, and not the dead versions of those that are done (which a long transaction of anybody
 * keeps on every page, and vacuum cannot take away).
 *
 * A read looks at the transactions from the last snapshot's `xmax` on. Those that were running then are remembered: the young ones
 * are covered by the next reads, which begin at the first of them, and an old one gets a range of its own when it has ended. What
 * a read leaves over becomes a range too, which later reads take up from both its ends: see `scans`.
 */
export interface OutboxCursor {
  /** The first transaction that the next read looks at for what is new. */
  firstNew(): bigint;
  /** For each resource its newest events, and the oldest of what earlier reads left over. */
  scans(resources: readonly string[], options?: { readonly withLeftOver: boolean }): readonly Scan[];
  /** Notes down what one read of all these scans came to; `snapshot` is that of the read itself. */
  advance(snapshot: Snapshot, scanned: readonly Scanned[]): void;
  /** The oldest and the newest of what earlier reads left over of a resource. */
  leftOver(resource: string): readonly Scan[];
  /** Has later reads take these events of a resource up again. */
  giveBack(resource: string, range: Range): void;
  /** Whether an earlier read left something over of one of these resources. */
  hasLeftOver(resources: readonly string[]): boolean;
}

/** @param all Every resource that the outbox is asked for. */
export function createOutboxCursor(all: readonly string[]): OutboxCursor {
  /** Transactions below were visible to an earlier read, but for the running ones. */
  let since = 0n;
  /** Reads for which each has been running. */
  const running = new Map<bigint, number>();
  const rests = new Map<string, Range[]>(all.map((resource) => [resource, []]));

  function firstYoung(): bigint {
    let first = since;
    for (const [transaction, reads] of running)
      if (reads <= youngReads && since - transaction < youngTransactions && transaction < first)
        first = transaction;
    return first;
  }

  function leave(resource: string, range: Range): void {
    const ranges = rests.get(resource);
    if (ranges === undefined) return;
    ranges.push(range);
    while (ranges.length > mostRanges) {
      const [one, other] = ranges as [Range, Range];
      ranges.splice(0, 2, {
        from: isAfter(one.from, other.from) ? other.from : one.from,
        to: isAfter(one.to, other.to) ? one.to : other.to,
      });
    }
  }

  return {
    firstNew: firstYoung,
    scans(resources, { withLeftOver } = { withLeftOver: true }) {
      const fresh = { from: { transaction: firstYoung() - 1n, event: last.event }, to: last };
      return resources.flatMap((resource) => {
        const [oldest] = rests.get(resource) ?? [];
        return [
          { resource, range: fresh },
          ...(oldest === undefined || !withLeftOver ? [] : [{ resource, range: oldest }]),
        ];
      });
    },
    advance(snapshot, scanned) {
      const visible: Position = { transaction: snapshot.xmax - 1n, event: last.event };
      const read = new Set<string>();
      const first = firstYoung();
      for (const { scan, last: taken, hasMore } of scanned) {
        const { resource, range } = scan;
        const isFresh = range.to === last;
        const ranges = rests.get(resource) ?? [];
        if (isFresh) read.add(resource);
        else ranges.splice(ranges.indexOf(range), ranges.includes(range) ? 1 : 0);
        if (!hasMore) continue;
        const rest = { from: taken ?? range.from, to: isFresh ? visible : range.to };
        if (isFresh) leave(resource, rest);
        else ranges.unshift(rest);
      }
      // Not asked for this time.
      for (const resource of rests.keys())
        if (!read.has(resource))
          leave(resource, { from: { transaction: first - 1n, event: last.event }, to: visible });
      for (const [transaction, reads] of running) {
        if (snapshot.running.has(transaction)) {
          running.set(transaction, reads + 1);
          continue;
        }
        running.delete(transaction);
        if (transaction >= first) continue;
        for (const resource of rests.keys())
          leave(resource, {
            from: { transaction: transaction - 1n, event: last.event },
            to: { transaction, event: last.event },
          });
      }
      for (const transaction of snapshot.running) if (!running.has(transaction)) running.set(transaction, 0);
      since = snapshot.xmax;
    },
    leftOver(resource) {
      const ranges = rests.get(resource) ?? [];
      const ends = [...new Set([ranges.at(0), ranges.at(-1)])];
      return ends.flatMap((range) => (range === undefined ? [] : [{ resource, range }]));
    },
    giveBack: leave,
    hasLeftOver: (resources) => resources.some((resource) => (rests.get(resource)?.length ?? 0) > 0),
  };
}

function isAfter(one: Position, other: Position): boolean {
  return one.transaction === other.transaction
    ? one.event > other.event
    : one.transaction > other.transaction;
}
