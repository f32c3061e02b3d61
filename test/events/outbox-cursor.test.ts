import { expect } from "chai";
import {
  beginning,
  createOutboxCursor,
  parseSnapshot,
  type OutboxCursor,
  type Position,
  type Range,
  type Scan,
  type Scanned,
} from "../../src/events/outbox-cursor.ts";
import { firstNew } from "../support/first-new.ts";
import { createRandom } from "../support/random.ts";

interface Entry {
  readonly resource: string;
  readonly at: Position;
}

const isAfter = (one: Position, other: Position): boolean =>
  one.transaction === other.transaction ? one.event > other.event : one.transaction > other.transaction;
const isIn = ({ at }: Entry, { from, to }: Range): boolean => isAfter(at, from) && !isAfter(at, to);

/** An outbox and its transactions, without a database. */
class Simulation {
  readonly committed: Entry[] = [];
  readonly running = new Map<bigint, Entry[]>();
  private nextTransaction = 1_000n;
  private nextEvent = 1n;

  begin(): bigint {
    const transaction = this.nextTransaction++;
    this.running.set(transaction, []);
    return transaction;
  }

  write(transaction: bigint, count: number, resource = "notes"): void {
    for (let n = 0; n < count; n++)
      this.running.get(transaction)?.push({ resource, at: { transaction, event: this.nextEvent++ } });
  }

  end(transaction: bigint, isCommitted = true): void {
    if (isCommitted) this.committed.push(...(this.running.get(transaction) ?? []));
    this.running.delete(transaction);
  }

  /** Writes `count` entries in one transaction. */
  commit(count: number, resource = "notes"): void {
    const transaction = this.begin();
    this.write(transaction, count, resource);
    this.end(transaction);
  }

  /** Does the same as `Outbox.read`: at most `limit` in all, of the scans in turn. */
  read(
    cursor: OutboxCursor,
    resources: readonly string[],
    limit: number,
    scans: readonly Scan[] = cursor.scans(resources),
  ): readonly Entry[] {
    const found = scans.map(({ resource, range }) =>
      this.committed
        .filter((entry) => entry.resource === resource && isIn(entry, range))
        .toSorted((one, other) => (isAfter(one.at, other.at) ? 1 : -1))
        .slice(0, limit),
    );
    const taken = scans.map((): Entry[] => []);
    let left = limit;
    for (let place = 0; left > 0 && found.some((entries) => entries.length > place); place++)
      for (const [index, entries] of found.entries()) {
        const entry = entries[place];
        if (entry !== undefined && left-- > 0) taken[index]?.push(entry);
      }
    const snapshot = { xmax: this.nextTransaction, running: new Set(this.running.keys()) };
    const scanned = scans.map((scan: Scan, index): Scanned => {
      const own = taken[index] ?? [];
      const hasMore = own.length < (found[index]?.length ?? 0) || own.length === limit;
      return { scan, last: own.at(-1)?.at, hasMore };
    });
    if (scans.length === 0 || scans.some(({ isNew }) => isNew)) cursor.advance(snapshot, scanned);
    else cursor.take(scanned);
    return [...new Set(taken.flat())];
  }

  /**
   * Reads `limit` at a time until a read finds nothing and nothing remains. Returns the ids of
   * events in order.
   */
  readAll(cursor: OutboxCursor, limit = 100, resources: readonly string[] = ["notes"]): readonly number[] {
    const found = new Set<Entry>();
    for (let isMore = true; isMore;) {
      const entries = this.read(cursor, resources, limit);
      for (const entry of entries) found.add(entry);
      this.forget(entries);
      isMore = entries.length > 0 || cursor.hasLeftOver(resources);
    }
    return [...found].map(({ at }) => Number(at.event));
  }

  /** Does the same as the fan-out. */
  forget(entries: readonly Entry[]): void {
    for (const entry of entries) this.committed.splice(this.committed.indexOf(entry), 1);
  }
}

const range = (transaction: bigint, from: bigint, to: bigint): Range => ({
  from: { transaction, event: from },
  to: { transaction, event: to },
});
const numbers = (from: number, to: number): number[] =>
  Array.from({ length: to - from + 1 }, (_, index) => from + index);

describe("parseSnapshot", () => {
  for (const [text, xmax, running] of [
    ["10:20:10,14,15", 20n, [10n, 14n, 15n]],
    ["10:10:", 10n, []],
    ["4294967296:9007199254740993:4294967296", 9007199254740993n, [4294967296n]],
  ] as const) {
    it(`reads ${text}`, () => {
      expect(parseSnapshot(text)).to.deep.equal({ xmax, running: new Set(running) });
    });
  }
});

describe("createOutboxCursor", () => {
  let outbox: Simulation;
  let cursor: OutboxCursor;

  beforeEach(() => {
    outbox = new Simulation();
    cursor = createOutboxCursor(["notes", "papers"]);
  });

  it("starts at the beginning, and does not read twice", () => {
    outbox.commit(3);

    expect(outbox.readAll(cursor)).to.deep.equal([1, 2, 3]);

    const [scan, ...more] = cursor.scans(["notes"]);
    expect(more).to.deep.equal([]);
    expect(isAfter(scan?.range.from ?? beginning, { transaction: 1_000n, event: 3n })).to.equal(true);
  });

  it("finds the events of a transaction that commits after a later one", () => {
    const early = outbox.begin();
    outbox.write(early, 1);
    outbox.commit(1);
    expect(outbox.readAll(cursor)).to.deep.equal([2]);

    outbox.end(early);

    expect(outbox.readAll(cursor)).to.deep.equal([1]);
  });

  it("finds the events that a transaction wrote after the read that saw it running", () => {
    const long = outbox.begin();
    outbox.read(cursor, ["notes"], 10);
    outbox.write(long, 2);
    outbox.end(long);

    expect(outbox.readAll(cursor)).to.deep.equal([1, 2]);
  });

  it("skips an old transaction, and finds its events when it ends, of every resource", () => {
    const long = outbox.begin();
    outbox.write(long, 2);
    outbox.write(long, 1, "papers");
    for (let read = 0; read < 30; read++) {
      outbox.commit(1);
      outbox.forget(outbox.read(cursor, ["notes"], 10));
    }
    expect(firstNew(cursor) > long).to.equal(true);

    outbox.end(long);

    expect(outbox.readAll(cursor, 1)).to.deep.equal([1, 2]);
    expect(outbox.readAll(cursor, 1, ["papers"])).to.deep.equal([3]);
  });

  it("skips transactions that ran at a first read without a scan, and finds their events when they end", () => {
    const long = outbox.begin();
    outbox.write(long, 2);
    outbox.read(cursor, [], 10);
    expect(firstNew(cursor) > long).to.equal(true);

    outbox.end(long);

    expect(outbox.readAll(cursor)).to.deep.equal([1, 2]);
  });

  it("looks no further back than 5,000 transactions for a long one", () => {
    const long = outbox.begin();
    outbox.read(cursor, ["notes"], 10);
    expect(firstNew(cursor)).to.equal(long);
    for (let count = 0; count < 5_000; count++) outbox.end(outbox.begin());
    outbox.read(cursor, ["notes"], 10);

    expect(firstNew(cursor)).to.equal(long + 5_001n);
  });

  it("reads the rest of a large read before it takes only older events", () => {
    outbox.commit(5);
    outbox.forget(outbox.read(cursor, ["notes"], 2));
    expect(cursor.hasLeftOver(["notes"])).to.equal(true);
    outbox.commit(1);

    const next = outbox.read(cursor, ["notes"], 2);

    expect(next.map(({ at }) => Number(at.event))).to.have.members([3, 6]);
    outbox.forget(next);
    expect(outbox.readAll(cursor, 2)).to.deep.equal([4, 5]);
    expect(cursor.hasLeftOver(["notes"])).to.equal(false);
  });

  it("reads events that were committed with a large transaction before the rest of that one", () => {
    outbox.commit(1_000);
    outbox.commit(1_000);
    outbox.commit(1);

    const order = outbox.readAll(cursor, 100);

    expect(order.toSorted((one, other) => one - other)).to.deep.equal(numbers(1, 2_001));
    expect(order.indexOf(2_001)).to.be.below(300);
  });

  it("keeps new events of a resource while that is not read", () => {
    outbox.read(cursor, ["notes", "papers"], 10);
    outbox.commit(2, "papers");
    for (let read = 0; read < 40; read++) {
      outbox.commit(1);
      outbox.forget(outbox.read(cursor, ["notes"], 10));
    }
    outbox.commit(1, "papers");

    expect(outbox.readAll(cursor, 1, ["papers"])).to.have.members([1, 2, 43]);
  });

  it("reads returned events again, and nothing of an unknown resource", () => {
    outbox.commit(5);
    outbox.read(cursor, ["notes"], 10);

    cursor.giveBack("notes", range(1_000n, 2n, 3n));
    cursor.giveBack("strangers", range(1_000n, 0n, 9n));

    expect(outbox.readAll(cursor)).to.deep.equal([3]);
  });

  for (const [how, order] of [
    ["in order", numbers(1, 40)],
    ["the other way round", numbers(1, 40).toReversed()],
  ] as const) {
    it(`loses none of many that are returned one by one, ${how}, of one transaction`, () => {
      outbox.commit(40);
      outbox.read(cursor, ["notes"], 100);

      for (const event of order) cursor.giveBack("notes", range(1_000n, BigInt(event) - 1n, BigInt(event)));

      expect(outbox.readAll(cursor, 7)).to.have.members(numbers(1, 40));
    });
  }

  it("keeps the progress in a range left over while new events are left over too", () => {
    cursor.giveBack("notes", { from: beginning, to: { transaction: 900n, event: 1n } });
    let furthest = 0n;

    for (let read = 0n; read < 40n; read++) {
      const scanned = cursor.scans(["notes"]).map((scan): Scanned => {
        const { from, to } = scan.range;
        // The entries of another relay, one of each transaction, of which a read goes through ten.
        const isOld = !scan.isNew && from.transaction < 900n;
        if (isOld && to.transaction <= from.transaction) return { scan, last: undefined, hasMore: false };
        const transaction = isOld ? from.transaction + 10n : 1_000n + read;
        if (isOld) furthest = transaction;
        return { scan, last: { transaction, event: 1n }, hasMore: true };
      });
      cursor.advance({ xmax: 1_002n + read, running: new Set() }, scanned);
    }

    expect(furthest >= 200n, `read up to ${furthest}`).to.equal(true);
  });

  it("returns the oldest and the newest range left over", () => {
    for (const transaction of [5n, 7n, 9n]) cursor.giveBack("notes", range(transaction, 0n, 1n));

    expect(cursor.leftOver("notes").map(({ range: { to } }) => to.transaction)).to.deep.equal([5n, 9n]);
    expect(cursor.leftOver("papers")).to.deep.equal([]);
  });

  it("reads all again as the oldest range, once, and continues with the other ranges", () => {
    outbox.commit(3);
    outbox.forget(outbox.read(cursor, ["notes"], 1));
    cursor.leaveAllOver();
    cursor.leaveAllOver();

    const [oldest, newest] = cursor.leftOver("notes");
    expect([isAfter(oldest?.range.from ?? beginning, beginning), newest?.range.from.event]).to.deep.equal([
      false,
      1n,
    ]);
    outbox.forget(outbox.read(cursor, ["notes"], 10, [newest!]));
    expect(cursor.leftOver("notes")).to.deep.equal([oldest]);
  });

  it("keeps events that are returned during a read of the whole outbox", () => {
    outbox.commit(20);
    outbox.read(cursor, ["notes"], 30);
    cursor.leaveAllOver();

    const scans = cursor.scans(["notes"]);
    const scanned = scans.map((scan) => ({ scan, last: undefined, hasMore: false }));
    for (let event = 1n; event <= 20n; event += 1n)
      cursor.giveBack("notes", range(1_000n, event - 1n, event));
    cursor.advance({ xmax: 1_001n, running: new Set() }, scanned);

    expect(outbox.readAll(cursor)).to.have.members(numbers(1, 20));
  });

  it("leaves everything over once when nothing was read yet", () => {
    cursor.leaveAllOver();
    outbox.commit(3);
    cursor.advance({ xmax: 1_001n, running: new Set() }, []);

    expect(cursor.leftOver("notes")).to.have.length(1);
  });

  for (const seed of numbers(1, 40)) {
    it(`reads every event at least once, for any sequence of operations (seed ${seed})`, () => {
      const random = createRandom(seed);
      const pick = (below: number): number => Math.floor(random() * below);
      const resources = ["notes", "papers"];
      /** Entries that were read and not returned since. */
      const held = new Set<Entry>();
      const written: Entry[] = [];
      const note = (entries: readonly Entry[]): void => {
        for (const entry of entries) held.add(entry);
      };
      const end = (transaction: bigint): void => {
        const isCommitted = pick(8) > 0;
        if (isCommitted) written.push(...(outbox.running.get(transaction) ?? []));
        outbox.end(transaction, isCommitted);
      };

      for (let step = 0; step < 1_500; step++) {
        const open = [...outbox.running.keys()];
        const transaction = open[pick(open.length)];
        const kind = pick(12);
        if (kind < 2 && open.length < 12) outbox.begin();
        else if (kind < 5 && transaction !== undefined)
          outbox.write(transaction, pick(50) === 0 ? 60 : 1 + pick(4), resources[pick(2)]);
        // The oldest is seldom committed, so that some stay open for long.
        else if (kind < 7 && transaction !== undefined && (transaction !== open[0] || pick(25) === 0))
          end(transaction);
        else if (kind < 10) {
          const asked = resources.filter(() => pick(4) > 0);
          const planned = [
            cursor.scans(asked),
            cursor.scans(asked, false),
            cursor.alone(asked, 0).slice(0, 1),
          ];
          const scans = planned[pick(3)] ?? [];
          if (pick(6) > 0) note(outbox.read(cursor, asked, 1 + pick(12), scans));
          // The read timed out.
          else
            cursor.setApart(
              scans.filter(({ isNew }) => !isNew),
              pick(2),
            );
          if (pick(100) === 0) cursor.leaveAllOver();
        } else if (kind === 10) {
          for (const entry of [...held].slice(-pick(20))) {
            held.delete(entry);
            const { transaction: its, event } = entry.at;
            cursor.giveBack(entry.resource, range(its, event - 1n, event));
          }
        } else {
          const done = [...held].slice(0, pick(15)).filter((entry) => outbox.committed.includes(entry));
          outbox.forget(done);
        }
      }
      for (const transaction of outbox.running.keys()) end(transaction);
      for (let reads = 0; reads === 0 || cursor.hasLeftOver(resources); reads++) {
        if (reads === 20_000) throw new Error("the reads come to no end");
        note(outbox.read(cursor, resources, 10));
        for (const scan of cursor.alone(resources, 1)) note(outbox.read(cursor, resources, 10, [scan]));
      }

      expect(written.filter((entry) => !held.has(entry) && outbox.committed.includes(entry))).to.deep.equal(
        [],
      );
      expect(written.length).to.be.above(200);
    });
  }
});
