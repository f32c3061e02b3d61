import { expect } from "chai";
import { createKnownSubscribers, type KnownSubscribers } from "../../src/subscriptions/known-subscribers.ts";

interface Row {
  readonly id: number;
  readonly bytes?: number;
}

const rowsOf = (...ids: readonly number[]): readonly Row[] => ids.map((id) => ({ id }));
const large = (id: number): readonly Row[] => [{ id, bytes: 5 * 1024 ** 2 }];

describe("createKnownSubscribers", () => {
  let nowMs: number;
  let known: KnownSubscribers<Row>;

  beforeEach(() => {
    nowMs = 0;
    known = createKnownSubscribers<Row>({
      idOf: ({ id }) => id,
      bytesOf: ({ bytes = 1 }) => bytes,
      now: () => nowMs,
    });
  });

  const keep = (key: string, rows: readonly Row[], snapshot = "10:10:", askedAtMs = nowMs): void =>
    known.keep([[key, rows]], { knownAt: { snapshot, readAtMs: 1 }, askedAtMs });
  const idsOf = (...keys: readonly string[]): readonly number[] | undefined =>
    known.find(keys)?.rows.map(({ id }) => id);

  it("answers several queries together: each row once, by id, and no rows too", () => {
    keep("a", rowsOf(3, 5));
    keep("b", rowsOf(1, 3, 9));
    keep("nothing", []);

    expect(idsOf("a", "b", "nothing")).to.deep.equal([1, 3, 5, 9]);
    expect(idsOf("nothing")).to.deep.equal([]);
  });

  it("answers nothing where one of the queries is unknown, or without a query", () => {
    keep("a", rowsOf(1));

    expect(idsOf("a", "b")).to.equal(undefined);
    expect(idsOf()).to.equal(undefined);
  });

  it("drops an answer 1 s after the query to the database", () => {
    nowMs = 400;
    keep("a", rowsOf(1), "10:10:", 0);

    nowMs = 999;
    expect(idsOf("a")).to.deep.equal([1]);
    nowMs = 1_000;
    expect(idsOf("a")).to.equal(undefined);
  });

  for (const [older, newer, why] of [
    ["9:10:", "10:11:", "fewer transactions have begun"],
    ["999:1000:", "1000:10000:", "the numbers have more digits"],
    ["5:20:5,8", "8:20:8", "one more is running"],
    ["5:20:5", "20:20:", "one is running"],
    ["5:20:5", "5:30:5,25", "fewer have begun, although fewer are running"],
  ] as const)
    it(`returns the oldest of the snapshots of its answers, in which ${why}`, () => {
      for (const order of [
        [older, newer],
        [newer, older],
      ])
        for (const [index, snapshot] of order.entries()) {
          keep(String(index), rowsOf(1), snapshot);
          if (index === 1) expect(known.find(["0", "1"])?.knownAt.snapshot).to.equal(older);
        }
    });

  it("keeps the newer answer to a query, and its snapshot", () => {
    keep("a", rowsOf(1));
    keep("a", rowsOf(2), "11:11:");

    expect(known.find(["a"])).to.deep.equal({
      rows: rowsOf(2),
      knownAt: { snapshot: "11:11:", readAtMs: 1 },
    });
  });

  it("keeps no answer of more than 100 rows, and drops the one before it", () => {
    const ids = Array.from({ length: 101 }, (_, index) => index);
    keep("a", rowsOf(...ids.slice(1)));
    expect(idsOf("a")).to.have.length(100);

    keep("a", rowsOf(...ids));

    expect(idsOf("a")).to.equal(undefined);
  });

  it("keeps the last 5,000 answers", () => {
    for (let key = 0; key <= 5_000; key++) keep(String(key), []);
    expect(idsOf("0")).to.equal(undefined);
    expect(idsOf("1", "5000")).to.deep.equal([]);
  });

  it("keeps 16 MB, and has space again after an answer was replaced, ended or dropped", () => {
    for (let turn = 0; turn < 10; turn++) keep("a", large(1));
    keep("b", large(2));
    keep("c", large(3));
    expect(idsOf("a", "b", "c")).to.deep.equal([1, 2, 3]);

    keep("d", large(4));
    expect(idsOf("a")).to.equal(undefined);
    expect(idsOf("b", "c", "d")).to.deep.equal([2, 3, 4]);

    nowMs = 1_000;
    for (const key of ["a", "b", "c"]) keep(key, large(1));
    expect(idsOf("a", "b", "c")).to.deep.equal([1]);
    known.forget();
    expect(idsOf("a")).to.equal(undefined);
    for (const key of ["d", "e", "f"]) keep(key, large(1));
    nowMs += 100;
    expect(idsOf("d", "e", "f")).to.deep.equal([1]);
  });

  it("answers nothing for 100 ms after a reset, after any number of them, and forgets earlier answers", () => {
    keep("early", []);
    known.forget();
    keep("a", []);
    nowMs += 99;
    expect(idsOf("a")).to.equal(undefined);
    nowMs += 1;
    expect(idsOf("a")).to.deep.equal([]);
    expect(idsOf("early")).to.equal(undefined);
  });
});
