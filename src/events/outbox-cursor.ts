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
  /** A read of the range took too long, so it is read alone, from this time on. */
  readonly aloneFromMs?: number;
  /** It came during reads that did not include the resource. */
  readonly isUnread?: boolean;
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
  /** Whether the scan searches for the few events of one owner after the many events of another. */
  readonly looksFar: boolean;
}

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
/** Start of the whole outbox, from which one read looks far; later ones start at `beginning`. */
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
 * Plans reads that find every event of the outbox when it becomes visible, in any order of commits.
 * A read does not scan again the rows that are being published. It also skips dead row versions,
 * which vacuum cannot remove while a long transaction runs.
 *
 * A read begins at the `xmax` of the last snapshot. Transactions that were running then are
 * remembered. The next reads cover the young ones, because they begin at the first of them. An old
 * one gets its own range when it has ended.
 *
 * Events that a read leaves over become two ranges: what is left of the last transaction, and later
 * transactions. Later reads take from the oldest range and from the newest one. Without that, one
 * statement of 20,000 rows delayed a later change by 10 s.
 *
 * A scan reads past the rows of running transactions, and past rows that vacuum cannot remove yet.
 * Millions of them take longer than a statement may. After a read that took too long, each range
 * left over is read alone, and so delays no other range.
 */
export interface OutboxCursor {
  /** Returns a scan of new events of each resource, and by default those of `leftOver`. */
  scans(resources: readonly string[], isCatchingUp?: boolean): readonly Scan[];
  /** Records the results of all scans of one read; `snapshot` is the snapshot of that read. */
  advance(snapshot: TransactionSnapshot, scanned: readonly Scanned[]): void;
  /** Records the results of a read that only scans ranges left over. */
  take(scanned: readonly Scanned[]): void;
  /**
   * Returns scans of ranges that earlier reads left over: first the oldest range, then from the
   * newest.
   *
   * @param most Most scans. Default: two.
   */
  leftOver(resource: string, most?: number): readonly Scan[];
  /** Returns the scans that are to be read alone now, the first due first. */
  alone(resources: readonly string[], nowMs: number): readonly Scan[];
  /** Makes later reads take these ranges one by one, from this time on. */
  setApart(scans: readonly Scan[], fromMs: number): void;
  /** Makes later reads take all events again, as the oldest of those left over. */
  leaveAllOver(): void;
  /** Makes later reads take the events of a range again. */
  giveBack(resource: string, range: Range): void;
  /** Returns whether `leftOver` or `alone` returns a scan of any of these resources. */
  hasLeftOver(resources: readonly string[], nowMs?: number): boolean;
}

interface State {
  /** Transactions below this id were visible to an earlier read, except the running ones. */
  since: bigint;
  /** Running transactions, with the number of reads during which each was running. */
  readonly running: Map<bigint, number>;
  /** Ranges left over, by resource. */
  readonly left: ReadonlyMap<string, Range[]>;
}

/** @param all Every resource whose events are read. */
export function createOutboxCursor(all: readonly string[]): OutboxCursor {
  const state: State = {
    since: 0n,
    running: new Map(),
    left: new Map(all.map((resource) => [resource, []])),
  };
  return {
    scans: (resources, isCatchingUp = true) =>
      resources.flatMap((resource): readonly Scan[] => {
        const range = { from: lastBefore(firstYoung(state)), to: end };
        const scan = { resource, range, isNew: true, looksFar: true };
        return isCatchingUp ? [scan, ...leftOver(state, resource)] : [scan];
      }),
    advance: (snapshot, scanned) => advance(state, snapshot, scanned),
    take: (scanned) => take(state, scanned),
    leftOver: (resource, most) => leftOver(state, resource, most),
    alone: (resources, nowMs) =>
      resources
        .flatMap((resource) => alone(state, resource, nowMs))
        .toSorted(({ range: one }, { range: other }) => (one.aloneFromMs ?? 0) - (other.aloneFromMs ?? 0)),
    setApart(scans, aloneFromMs) {
      for (const { resource, range } of scans) replace(state, resource, range, [{ ...range, aloneFromMs }]);
    },
    leaveAllOver() {
      // The first read leaves the whole outbox over.
      if (state.since === 0n) return;
      const whole = { from: beforeAll, to: lastBefore(firstYoung(state)) };
      for (const ranges of state.left.values()) {
        const [oldest] = ranges;
        if (oldest !== undefined && isWhole(oldest)) ranges[0] = { ...oldest, ...whole };
        else ranges.unshift(whole);
      }
    },
    giveBack: (resource, range) => leaveOver(state, resource, range),
    hasLeftOver: (resources, nowMs = Infinity) =>
      resources.some((resource) =>
        state.left.get(resource)?.some(({ aloneFromMs = 0 }) => aloneFromMs <= nowMs),
      ),
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
  const visible = lastBefore(snapshot.xmax);
  const first = firstYoung(state);
  // Handles ranges left over first. A new one may make `leaveOver` join the oldest ones. The
  // progress of a scan in them would then be lost.
  take(state, scanned);
  const ofNew = scanned.filter(({ scan }) => scan.isNew);
  for (const { scan, last, hasMore } of ofNew)
    if (hasMore)
      for (const one of leftAfter(last ?? scan.range.from, visible)) leaveOver(state, scan.resource, one);
  // The ranges of resources that this read did not include are left over.
  const read = new Set(ofNew.map(({ scan }) => scan.resource));
  for (const resource of state.left.keys())
    if (!read.has(resource))
      leaveOver(state, resource, { from: lastBefore(first), to: visible, isUnread: true });
  noteRunning(state, snapshot, { first, isBlind: scanned.length === 0 });
  state.since = snapshot.xmax;
}

/** Records how far ranges left over were read. The ranges of scans for new events are none. */
function take(state: State, scanned: readonly Scanned[]): void {
  for (const { scan, last, hasMore } of scanned) {
    const { resource, range } = scan;
    const untouched = { ...range, from: isWhole(range) ? beginning : range.from };
    const by = last === undefined ? [untouched] : leftAfter(last, range.to);
    replace(state, resource, range, hasMore ? by : []);
  }
}

/** Replaces a range. A range that was joined to another meanwhile is read again with it. */
function replace({ left }: State, resource: string, range: Range, by: readonly Range[]): void {
  const ranges = left.get(resource) ?? [];
  const place = ranges.indexOf(range);
  if (place !== -1) ranges.splice(place, 1, ...by);
}

/** Returns what is left of a range, divided at the end of the transaction that was read last. */
function leftAfter(from: Position, to: Position): readonly Range[] {
  const between = lastBefore(from.transaction + 1n);
  if (to.transaction <= from.transaction || !isAfter(between, from)) return [{ from, to }];
  return [
    { from, to: between },
    { from: between, to },
  ];
}

/** Returns whether a range is the whole outbox, of which nothing was read. */
function isWhole({ from }: Range): boolean {
  return !isAfter(from, beginning);
}

function leftOver({ left }: State, resource: string, most = 2): readonly Scan[] {
  const ranges = (left.get(resource) ?? []).filter(({ aloneFromMs }) => aloneFromMs === undefined);
  return [...ranges.slice(0, 1), ...ranges.slice(1).toReversed()].slice(0, most).map((range) => ({
    resource,
    range,
    isNew: false,
    looksFar: range.from.transaction < 0n,
  }));
}

function alone({ left }: State, resource: string, nowMs: number): readonly Scan[] {
  return (left.get(resource) ?? []).flatMap((range) =>
    range.aloneFromMs === undefined || range.aloneFromMs > nowMs
      ? []
      : [{ resource, range, isNew: false, looksFar: false }],
  );
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
  const { running, left } = state;
  for (const [transaction, reads] of running) {
    if (snapshot.running.has(transaction)) {
      running.set(transaction, reads + 1);
      continue;
    }
    running.delete(transaction);
    if (transaction >= first) continue;
    for (const resource of left.keys())
      leaveOver(state, resource, { from: lastBefore(transaction), to: lastBefore(transaction + 1n) });
  }
  // A transaction that runs during a read without a scan may have written millions of events.
  const reads = isBlind ? youngReads + 1 : 0;
  for (const transaction of snapshot.running) if (!running.has(transaction)) running.set(transaction, reads);
}

function leaveOver({ left }: State, resource: string, range: Range): void {
  const ranges = left.get(resource);
  if (ranges === undefined) return;
  // No range joins one that is read alone, or the whole outbox, whose read may take too long.
  const isApart = (one: Range): boolean => one.aloneFromMs !== undefined || isWhole(one);
  // While the resource rests, the newest range begins with the first event since the pause began.
  const last = ranges.at(-1);
  if (range.isUnread === true && last?.isUnread === true && !isApart(last)) {
    ranges.splice(-1, 1, { ...join(last, range), isUnread: true });
    return;
  }
  ranges.push(range);
  const younger = ranges.filter((one) => !isApart(one));
  const oldest = younger.splice(0, younger.length - mostRanges + 1);
  if (oldest.length > 1)
    ranges.splice(0, ranges.length, ...ranges.filter(isApart), oldest.reduce(join), ...younger);
}

function join(one: Range, other: Range): Range {
  return {
    from: isAfter(one.from, other.from) ? other.from : one.from,
    to: isAfter(one.to, other.to) ? one.to : other.to,
  };
}

/** Returns the first transaction that the scans may cover. */
export function firstOf(scans: readonly Scan[]): bigint {
  let first = scans[0]?.range.from.transaction ?? 0n;
  for (const { range } of scans) if (range.from.transaction < first) first = range.from.transaction;
  return first;
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
