import { expect } from "chai";
import {
  createOutboxCursor,
  type OutboxCursor,
  type Position,
  type Range,
  type Reach,
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

  /** Reads new events, and of what is left over nothing that has an end. */
  function read(reach: Reach, result: Pick<Scanned, "last" | "hasMore">): void {
    xmax += 10n;
    const scans = cursor.scans(["notes"], reach);
    cursor.advance(
      { xmax, running: new Set() },
      scans.map((scan) => ({ scan, ...(scan.isNew ? result : { last: undefined, hasMore: true }) })),
    );
  }

  const left = (reach: Reach = "both"): readonly string[] =>
    cursor.leftOver("notes", reach).map(({ range }) => textOf(range));

  it("leaves one range when the whole outbox is read and its first event not taken", () => {
    read("whole", { last: undefined, hasMore: true });
    expect(left()).to.deep.equal(["-1..1009"]);

    for (let event = 0n; event < 30n; event += 1n)
      cursor.giveBack("notes", { from: at(2_000n, event), to: at(2_000n, event + 1n) });

    expect(left()[0]).to.equal("-1..1009");
  });

  it("keeps what is newest the newest when a read of the whole outbox does not get to it", () => {
    read("none", { last: at(1_005n, 1n), hasMore: true });
    cursor.leaveAllOver();
    expect(left("newest")).to.deep.equal(["1005..1009"]);

    read("whole", { last: at(500n, 1n), hasMore: true });

    expect(left("newest")).to.deep.equal(["1005..1009"]);
    expect(left("younger").at(0)).to.equal("500..1019");
  });

  it("forgets what was left over when the whole outbox is read to its end", () => {
    read("none", { last: at(1_005n, 1n), hasMore: true });

    read("whole", { last: at(1_015n, 1n), hasMore: false });

    expect(left()).to.deep.equal([]);
  });

  it("puts nothing before the whole outbox when a range was joined during its read", () => {
    cursor.leaveAllOver();
    cursor.giveBack("notes", { from: at(900n, 0n), to: at(900n, 9n) });
    const scans = cursor.scans(["notes"], "younger");
    for (let event = 10n; event < 40n; event += 1n)
      cursor.giveBack("notes", { from: at(901n, event), to: at(901n, event + 1n) });

    const scanned = scans.map((scan) => ({ scan, last: at(900n, 4n), hasMore: !scan.isNew }));
    cursor.advance({ xmax: 1_001n, running: new Set() }, scanned);

    expect(left()[0]).to.equal("-1..999");
  });
});
