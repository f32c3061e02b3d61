import { expect } from "chai";
import {
  createOutboxCursor,
  type OutboxCursor,
  type Position,
  type Range,
  type Scanned,
} from "../../src/events/outbox-cursor.ts";

const at = (transaction: bigint, event: bigint): Position => ({ transaction, event });
const textOf = ({ from, to }: Range): string => `${from.transaction}..${to.transaction}`;

// Reads of the whole outbox; outbox-cursor.test.ts has the rest.
describe("createOutboxCursor", () => {
  let cursor: OutboxCursor;
  let xmax: bigint;

  beforeEach(() => {
    cursor = createOutboxCursor(["notes"]);
    xmax = 1_000n;
    cursor.advance({ xmax, running: new Set() }, []);
  });

  type Result = Pick<Scanned, "last" | "hasMore">;
  const nothing: Result = { last: undefined, hasMore: true };

  /** Reads new events and the oldest of the remaining ones, and leaves the newest. */
  function read(ofNew: Result, ofOldest: Result): void {
    xmax += 10n;
    const results = [ofNew, ofOldest, nothing];
    const scanned = cursor.scans(["notes"]).map((scan, index) => ({ scan, ...(results[index] ?? nothing) }));
    cursor.advance({ xmax, running: new Set() }, scanned);
  }

  const left = (): readonly string[] => cursor.leftOver("notes").map(({ range }) => textOf(range));
  const looksFar = (): readonly boolean[] => cursor.leftOver("notes").map((scan) => scan.looksFar);

  it("looks far once, also when nothing is taken, and joins nothing to it", () => {
    expect([left(), looksFar()]).to.deep.equal([["-1..999"], [true]]);

    read({ last: undefined, hasMore: false }, nothing);

    expect([left(), looksFar()]).to.deep.equal([["0..999"], [false]]);
    for (let event = 0n; event < 30n; event += 1n)
      cursor.giveBack("notes", { from: at(2_000n, event), to: at(2_000n, event + 1n) });
    expect(left()[0]).to.equal("0..999");
    expect(cursor.leftOver("notes", 100), "the whole, and the most of others").to.have.length(9);
    cursor.leaveAllOver();
    expect([left()[0], looksFar()[0]]).to.deep.equal(["-1..1009", true]);
  });

  it("reads a range alone from its time on, not far, also when all is read again", () => {
    read({ last: at(1_005n, 1n), hasMore: true }, nothing);

    cursor.setApart(cursor.leftOver("notes").slice(0, 1), 5);
    cursor.leaveAllOver();

    expect(left()).to.deep.equal(["1005..1005", "1005..1009"]);
    expect(cursor.alone(["papers"], 5)).to.deep.equal([]);
    expect(cursor.alone(["notes"], 4)).to.deep.equal([]);
    const alone = cursor.alone(["notes"], 5);
    expect(alone.map(({ range, looksFar: isFar }) => [textOf(range), isFar])).to.deep.equal([
      ["-1..1009", false],
    ]);
    cursor.take(cursor.leftOver("notes").map((scan) => ({ scan, last: undefined, hasMore: false })));
    expect([4, 5].map((nowMs) => cursor.hasLeftOver(["notes"], nowMs))).to.deep.equal([false, true]);
    cursor.take(alone.map((scan) => ({ scan, last: undefined, hasMore: false })));
    expect(cursor.hasLeftOver(["notes"])).to.equal(false);
  });

  it("joins what reads without the resource leave over, but nothing to a range that is read alone", () => {
    const readOthers = (): void => cursor.advance({ xmax: (xmax += 10n), running: new Set() }, []);
    const all = (): readonly string[] => cursor.leftOver("notes", 100).map(({ range }) => textOf(range));
    const alone = (): readonly string[] => cursor.alone(["notes"], 5).map(({ range }) => textOf(range));
    for (let count = 0; count < 3; count += 1) readOthers();
    expect(all()).to.deep.equal(["-1..999", "999..1029"]);

    cursor.setApart(cursor.leftOver("notes", 100).slice(1), 5);
    readOthers();
    for (let event = 0n; event < 30n; event += 1n)
      cursor.giveBack("notes", { from: at(2_000n, event), to: at(2_000n, event + 1n) });

    expect([alone(), all()[0], all().length]).to.deep.equal([["999..1029"], "-1..999", 9]);
  });

  it("keeps a range alone of which a read took nothing, and reads the events after one with others", () => {
    cursor.setApart(cursor.leftOver("notes"), 0);
    const take = (result: Result): void =>
      cursor.take(cursor.alone(["notes"], 0).map((scan) => ({ scan, ...result })));

    take(nothing);
    expect([left().length, cursor.alone(["notes"], 0).length]).to.deep.equal([0, 1]);
    take({ last: at(500n, 1n), hasMore: true });

    expect([left(), cursor.alone(["notes"], 0)]).to.deep.equal([["500..500", "500..999"], []]);
  });

  it("returns the first due of the ranges that are read alone", () => {
    read({ last: at(1_005n, 1n), hasMore: true }, nothing);
    const [oldest, newest] = cursor.leftOver("notes");
    cursor.setApart([oldest!], 9);
    cursor.setApart([newest!], 3);

    const alone = cursor.alone(["notes"], 9).map(({ range }) => textOf(range));
    expect(alone).to.deep.equal(["1005..1009", "0..999"]);
  });

  it("keeps the newest range the newest when a read of the whole outbox does not reach it", () => {
    read({ last: at(1_005n, 1n), hasMore: true }, { last: undefined, hasMore: false });
    expect(left()).to.deep.equal(["1005..1005", "1005..1009"]);
    cursor.leaveAllOver();

    read({ last: undefined, hasMore: false }, { last: at(500n, 1n), hasMore: true });

    expect(left()).to.deep.equal(["500..500", "1005..1009"]);
  });

  it("puts nothing before the whole outbox when a range was joined during its read", () => {
    cursor.giveBack("notes", { from: at(900n, 0n), to: at(900n, 9n) });
    const scans = cursor.leftOver("notes");
    for (let event = 10n; event < 40n; event += 1n)
      cursor.giveBack("notes", { from: at(901n, event), to: at(901n, event + 1n) });

    cursor.take(scans.slice(1).map((scan) => ({ scan, last: at(900n, 4n), hasMore: true })));

    expect(left()).to.deep.equal(["-1..999", "901..901"]);
  });
});
