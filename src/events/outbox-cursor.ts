/**
 * Position of an event in the order in which a resource's part of the outbox is read. Both are
 * PostgreSQL bigints.
 */
export interface Position {
  readonly transaction: bigint;
  readonly event: bigint;
}

/** Events of one resource after `from`, up to `to` inclusive. */
export interface Range {
  readonly from: Position;
  readonly to: Position;
}

/** The transactions that are visible at one moment (`pg_current_snapshot`). */
export interface TransactionSnapshot {
  /** Transactions with this id or a later one are not visible. */
  readonly xmax: bigint;
  /** Transactions below `xmax` that are still running. */
  readonly running: ReadonlySet<bigint>;
}

/** One read of a resource: some of the events in `range`. */
export interface Scan {
  readonly resource: string;
  readonly range: Range;
  /** Whether the scan is for new events instead of those left over. */
  readonly isNew: boolean;
  /** The ranges left over that a scan of the whole outbox covers. */
  readonly covered?: readonly Range[];
}

/**
 * What a read takes beside new events, of the ranges that earlier reads left over: the oldest and
 * the newest, all but the oldest, the newest unless it is the oldest, or none. With `whole`, all
 * events count as new.
 */
export type Reach = "whole" | "both" | "younger" | "newest" | "none";

/** Result of a scan. */
export interface Scanned {
  readonly scan: Scan;
  /** Position up to which no event was skipped; undefined when the first event was skipped. */
  readonly last: Position | undefined;
  /** Whether the range may hold more visible events, after `last`. */
  readonly hasMore: boolean;
}

const end: Position = { transaction: 2n ** 62n, event: 2n ** 62n };
export const beginning: Position = { transaction: 0n, event: 0n };
/** Start of a scan for new events that takes the whole outbox. */
const beforeAll: Position = { transaction: -1n, event: end.event };

/** A transaction that runs for more reads gets its own range, which is read once it has ended. */
const youngReads = 10;
const youngTransactions = 5_000n;
/**
 * Most ranges of a resource; more are joined. Events that are read twice are recognised by their
 * ids.
 */
const mostRanges = 8;

/** Parses `xmin:xmax:xip_list`. */
export function parseSnapshot(text: string): TransactionSnapshot {
  const [, xmax = "0", running = ""] = text.split(":");
  return {
    xmax: BigInt(xmax),
    running: new Set(running === "" ? [] : running.split(",").map((id) => BigInt(id))),
  };
}

/**
 * Plans reads that find every event of the outbox when it becomes visible, in whatever order
 * transactions commit. A read does not scan again the rows that are being published. It also skips
 * dead row versions, which vacuum cannot remove while a long transaction runs.
 *
 * A read begins at the `xmax` of the last snapshot. Transactions that were running then are
 * remembered. The next reads cover the young ones, because they begin at the first of them. An old
 * one gets its own range when it has ended.
 *
 * Events that a read leaves over become two ranges: the rest of the last transaction, and later
 * transactions. Later reads take from the oldest range and from the newest one. Without that, one
 * statement of 20,000 rows delayed a later change by 10 s.
 */
export interface OutboxCursor {
  /** Returns the id of the first transaction that the next read for new events covers. */
  firstNew(): bigint;
  /** Returns scans of each resource: one of new events, and scans of those left over. */
  scans(resources: readonly string[], reach?: Reach): readonly Scan[];
  /** Records the results of all scans of one read; `snapshot` is the snapshot of that read. */
  advance(snapshot: TransactionSnapshot, scanned: readonly Scanned[]): void;
  /** Returns scans of events that earlier reads left over. */
  leftOver(resource: string, reach?: Reach): readonly Scan[];
  /** Makes later reads take all events again, as the oldest of those left over. */
  leaveAllOver(): void;
  /** Makes later reads take the events of a range again. */
  giveBack(resource: string, range: Range): void;
  /** Returns whether earlier reads left over events of any of these resources, within reach. */
  hasLeftOver(resources: readonly string[], reach?: Reach): boolean;
}

interface State {
  /** Transactions below this id were visible to an earlier read, except the running ones. */
  since: bigint;
  /** Running transactions, with the number of reads during which each was running. */
  readonly running: Map<bigint, number>;
  /** Ranges left over, by resource. */
  readonly rests: ReadonlyMap<string, Range[]>;
}

/** @param all Every resource whose events are read. */
export function createOutboxCursor(all: readonly string[]): OutboxCursor {
  const state: State = {
    since: 0n,
    running: new Map(),
    rests: new Map(all.map((resource) => [resource, []])),
  };
  return {
    firstNew: () => firstYoung(state),
    scans: (resources, reach = "both") =>
      resources.flatMap((resource): readonly Scan[] => {
        if (reach === "whole") return [wholeScan(state, resource)];
        const range = { from: lastBefore(firstYoung(state)), to: end };
        return [{ resource, range, isNew: true }, ...leftOver(state, resource, reach)];
      }),
    advance: (snapshot, scanned) => advance(state, snapshot, scanned),
    leftOver: (resource, reach = "both") => leftOver(state, resource, reach),
    leaveAllOver() {
      // The first read leaves all over.
      if (state.since === 0n) return;
      const whole = { from: beforeAll, to: lastBefore(firstYoung(state)) };
      for (const ranges of state.rests.values()) ranges.splice(0, beginsWithWhole(ranges) ? 1 : 0, whole);
    },
    giveBack: (resource, range) => leaveOver(state, resource, range),
    hasLeftOver: (resources, reach = "both") =>
      resources.some((resource) => leftOver(state, resource, reach).length > 0),
  };
}

function firstYoung({ since, running }: State): bigint {
  let first = since;
  for (const [transaction, reads] of running)
    if (reads <= youngReads && since - transaction < youngTransactions && transaction < first)
      first = transaction;
  return first;
}

function advance(state: State, snapshot: TransactionSnapshot, scanned: readonly Scanned[]): void {
  const { rests } = state;
  const visible = lastBefore(snapshot.xmax);
  const first = firstYoung(state);
  const read = new Set<string>();
  // Handles scans of older ranges first. A new range may make `leaveOver` join the oldest ones. The
  // progress of a scan in them would then be lost.
  const inOrder = scanned.toSorted((one, other) => Number(one.scan.isNew) - Number(other.scan.isNew));
  for (const { scan, last, hasMore } of inOrder) {
    const { resource, range, isNew, covered } = scan;
    const ranges = rests.get(resource) ?? [];
    const left = hasMore ? restOf(last ?? range.from, isNew ? visible : range.to) : [];
    if (isNew) {
      read.add(resource);
      if (covered === undefined) for (const rest of left) leaveOver(state, resource, rest);
      else {
        // What was given back meanwhile stays, which the read may have left out. Later ranges stay,
        // too. Their events would wait behind all that the read left over.
        const isRead = (one: Range): boolean =>
          beginsWithWhole([one]) || !hasMore || !isAfter(one.to, last ?? range.from);
        const others = ranges.filter((one) => !covered.includes(one) || !isRead(one));
        ranges.splice(0, ranges.length, ...left, ...others);
      }
    } else {
      const place = ranges.indexOf(range);
      // A range that was joined meanwhile is read again with the other one.
      if (place !== -1) ranges.splice(place, 1, ...left);
    }
  }
  // The ranges of resources that this read did not include are left over.
  for (const resource of rests.keys())
    if (!read.has(resource)) leaveOver(state, resource, { from: lastBefore(first), to: visible });
  noteRunning(state, snapshot, { first, isBlind: scanned.length === 0 });
  state.since = snapshot.xmax;
}

/** Divides the rest of a range at the end of the transaction that was read last. */
function restOf(from: Position, to: Position): readonly Range[] {
  const between = lastBefore(from.transaction + 1n);
  if (to.transaction <= from.transaction || !isAfter(between, from)) return [{ from, to }];
  return [
    { from, to: between },
    { from: between, to },
  ];
}

/** Returns whether the oldest range is the whole outbox, of which nothing was read. */
function beginsWithWhole([oldest]: readonly Range[]): boolean {
  return oldest !== undefined && !isAfter(oldest.from, beginning);
}

function wholeScan({ rests }: State, resource: string): Scan {
  const covered = [...(rests.get(resource) ?? [])];
  return { resource, range: { from: beforeAll, to: end }, isNew: true, covered };
}

function leftOver({ rests }: State, resource: string, reach: Reach): readonly Scan[] {
  const ranges = rests.get(resource) ?? [];
  const newest = ranges.length > 1 ? [ranges.at(-1)] : [];
  const younger = ranges.slice(1);
  const taken = { whole: [], none: [], newest, younger, both: [...ranges.slice(0, 1), ...newest] }[reach];
  return taken.flatMap((range) => (range === undefined ? [] : [{ resource, range, isNew: false }]));
}

/**
 * Updates the running transactions. A transaction that has ended, and began before `first`, becomes
 * its own range.
 */
function noteRunning(
  state: State,
  snapshot: TransactionSnapshot,
  { first, isBlind }: { readonly first: bigint; readonly isBlind: boolean },
): void {
  const { running, rests } = state;
  for (const [transaction, reads] of running) {
    if (snapshot.running.has(transaction)) {
      running.set(transaction, reads + 1);
      continue;
    }
    running.delete(transaction);
    if (transaction >= first) continue;
    for (const resource of rests.keys())
      leaveOver(state, resource, { from: lastBefore(transaction), to: lastBefore(transaction + 1n) });
  }
  // What is running at a read without a scan may have written millions of events.
  const reads = isBlind ? youngReads + 1 : 0;
  for (const transaction of snapshot.running) if (!running.has(transaction)) running.set(transaction, reads);
}

function leaveOver({ rests }: State, resource: string, range: Range): void {
  const ranges = rests.get(resource);
  if (ranges === undefined) return;
  ranges.push(range);
  while (ranges.length > mostRanges) {
    // No range joins the whole outbox, whose read may take too long.
    const first = beginsWithWhole(ranges) ? 1 : 0;
    const [one, other] = ranges.slice(first) as [Range, Range];
    ranges.splice(first, 2, {
      from: isAfter(one.from, other.from) ? other.from : one.from,
      to: isAfter(one.to, other.to) ? one.to : other.to,
    });
  }
}

/** Returns the last position before the events of a transaction. */
function lastBefore(transaction: bigint): Position {
  return { transaction: transaction - 1n, event: end.event };
}

function isAfter(one: Position, other: Position): boolean {
  return one.transaction === other.transaction
    ? one.event > other.event
    : one.transaction > other.transaction;
}
