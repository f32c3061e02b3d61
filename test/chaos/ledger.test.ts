import { expect } from "chai";
import { type Arrival, closeLedger, type Facts, isClean, type Ledger } from "../../bench/chaos/ledger.ts";

const steady = { path: "/all", subscriptionId: 1, triggers: ["on_create", "on_delete"], ownerId: undefined };
const ofSeven = { path: "/seven", subscriptionId: 2, triggers: ["on_create"], ownerId: 7 };

/** A correct POST of the first change to the first subscription. */
const arrival: Arrival = {
  receiver: 0,
  path: "/all",
  change: "on_create ada 1",
  delivery: "delivery-1",
  event: "event-1",
  occurredAtMs: 1_000,
  receivedAtMs: 1_010,
  digest: "a",
  isGenuine: true,
  answer: "accepted",
};
const toSeven: Arrival = { ...arrival, path: "/seven", delivery: "delivery-2" };

const row: Facts["deliveries"][number] = {
  uuid: "delivery-1",
  event: "event-1",
  subscriptionId: 1,
  status: "delivered",
  reason: null,
  replayId: null,
  isRemoved: false,
};
const rowToSeven = { ...row, uuid: "delivery-2", subscriptionId: 2 };
const event = { uuid: "event-1", change: "on_create ada 1", isErased: false };

/** One change of user 7, which two subscriptions match and received. */
const facts: Facts = {
  journal: [{ change: "on_create ada 1", ownerId: 7 }],
  tried: [{ change: "on_create ada 1", outcome: "acknowledged" }],
  audiences: [steady, ofSeven],
  arrivals: [arrival, toSeven],
  events: [event],
  deliveries: [row, rowToSeven],
  replays: [],
};

function ledgerOf(changes: Partial<Facts>): Ledger {
  return closeLedger({ ...facts, ...changes });
}

/** Returns the ledger with one delivery that was removed in this status. */
function removed(status: string): Ledger {
  return ledgerOf({ deliveries: [row, { ...rowToSeven, status, isRemoved: true }] });
}

describe("closeLedger", () => {
  it("finds no fault when every due pair arrived once", () => {
    const ledger = ledgerOf({});

    expect(ledger).to.deep.equal({
      changes: { committed: 1, acknowledged: 1, refused: 0, unknown: { committed: 0, not: 0 } },
      events: 1,
      erased: 0,
      removed: 0,
      replays: {},
      replayed: {},
      deliveries: { delivered: 2 },
      due: 2,
      delivered: 2,
      explained: {},
      lost: [],
      phantom: [],
      duplicates: 0,
      doubled: [],
      altered: [],
      broken: [],
    });
    expect(isClean(ledger)).to.equal(true);
  });

  for (const [what, arrivals] of [
    ["never came, whatever its row says", [arrival]],
    ["was never answered with 2xx", [arrival, { ...toSeven, answer: "refused" }]],
    ["came without its signature", [arrival, { ...toSeven, isGenuine: false }]],
  ] as const) {
    it(`calls lost what ${what}`, () => {
      const ledger = ledgerOf({ arrivals });

      expect(ledger.lost).to.deep.equal(["/seven on_create ada 1"]);
      expect(ledger.delivered).to.equal(1);
      expect(isClean(ledger)).to.equal(false);
    });
  }

  it("calls every change lost that no receiver got", () => {
    expect(ledgerOf({ arrivals: [] }).lost).to.deep.equal(["/all on_create ada 1", "/seven on_create ada 1"]);
  });

  for (const status of ["failed", "cancelled"]) {
    it(`explains a ${status} delivery only with a reason`, () => {
      const rows = (reason: string | null): Facts["deliveries"] => [{ ...rowToSeven, status, reason }];
      const explained = ledgerOf({ arrivals: [arrival], deliveries: rows("answered 500") });
      const unexplained = ledgerOf({ arrivals: [arrival], deliveries: rows(null) });

      expect(explained.explained).to.deep.equal({ [`${status}: answered 500`]: 1 });
      expect(explained.lost).to.deep.equal([]);
      expect(unexplained.lost).to.have.length(1);
    });
  }

  it("explains an event that was erased before its fan-out, and nothing else without a row", () => {
    const arrivals = [arrival];
    const gone = { arrivals, deliveries: [row] };
    const erased = ledgerOf({ ...gone, events: [{ ...event, isErased: true }] });

    expect(erased.explained).to.deep.equal({ "erased before it was fanned out": 1 });
    expect(erased.erased).to.equal(1);
    expect(ledgerOf(gone).lost).to.have.length(1);
  });

  it("accepts the removal of finished deliveries, and calls unfinished ones lost", () => {
    expect([removed("delivered").lost, removed("delivered").removed]).to.deep.equal([[], 1]);
    for (const status of ["pending", "retrying", "held"])
      expect(removed(status).lost).to.deep.equal(["delivery-2 was removed unfinished"]);
  });

  const replay = { id: "5", state: "done", reason: null, done: 1, failed: 0 };
  const replayed = { ...rowToSeven, uuid: "delivery-3", replayId: "5" };
  const arrivedAgain: Arrival = { ...toSeven, delivery: "delivery-3" };

  it("counts the deliveries of a replay, and calls none of them doubled", () => {
    const deliveries = [...facts.deliveries, replayed];
    const arrivals = [...facts.arrivals, arrivedAgain];
    const ledger = ledgerOf({ replays: [replay], deliveries, arrivals });

    expect([ledger.lost, ledger.phantom, ledger.doubled]).to.deep.equal([[], [], []]);
    expect([ledger.replays, ledger.replayed]).to.deep.equal([{ done: 1 }, { arrived: 1 }]);
  });

  for (const [what, replays, deliveries] of [
    ["of a replay that did not arrive", [replay], [replayed]],
    ["of a replay that has not ended", [{ ...replay, state: "running", done: 0 }], []],
    ["that its replay counts and nothing shows", [replay], []],
  ] as const) {
    it(`calls lost what is ${what}`, () => {
      expect(ledgerOf({ replays, deliveries: [...facts.deliveries, ...deliveries] }).lost).to.have.length(1);
    });
  }

  it("explains the events that a replay could not deliver", () => {
    const given = { ...replayed, status: "cancelled", reason: "The replay was cancelled." };
    const ended = { ...replay, state: "cancelled" };
    const ledger = ledgerOf({ replays: [ended], deliveries: [...facts.deliveries, given] });

    expect(ledger.lost).to.deep.equal([]);
    expect(ledger.replayed).to.deep.equal({ "cancelled: The replay was cancelled.": 1 });
  });

  it("counts an incomplete answer as a delivery, and its repetition as expected", () => {
    const begun: Arrival = { ...toSeven, answer: "begun" };
    const once = ledgerOf({ arrivals: [arrival, begun] });
    const twice = ledgerOf({ arrivals: [arrival, begun, { ...toSeven, receivedAtMs: 2_000 }] });

    expect([once.delivered, once.duplicates]).to.deep.equal([2, 0]);
    expect([twice.delivered, twice.duplicates]).to.deep.equal([2, 0]);
  });

  for (const [what, stray] of [
    ["a change that was rolled back", { change: "on_create sql 9" }],
    ["a subscription that does not match", { path: "/seven", change: "on_delete ada 1" }],
    ["an event that is not there", { event: "event-2" }],
    ["a wrong signature", { isGenuine: false }],
  ] as const) {
    it(`calls an arrival of ${what} phantom`, () => {
      const journal = [...facts.journal, { change: "on_delete ada 1", ownerId: 7 }];
      const arrivals = [...facts.arrivals, { ...arrival, change: "on_delete ada 1" }];
      const before = ledgerOf({ journal, arrivals });
      const after = ledgerOf({ journal, arrivals: [...arrivals, { ...arrival, ...stray }] });

      expect(before.phantom).to.deep.equal([]);
      expect(after.phantom).to.have.length(1);
      expect(isClean(after)).to.equal(false);
    });
  }

  it("calls an arrival phantom whose record belongs to another user", () => {
    const ledger = ledgerOf({ journal: [{ change: "on_create ada 1", ownerId: 8 }] });

    expect(ledger.phantom).to.deep.equal(["/seven on_create ada 1 (delivery delivery-2)"]);
  });

  it("counts the POSTs of a delivery after the accepted one, not those before", () => {
    const refused: Arrival = { ...arrival, receivedAtMs: 1_005, answer: "refused" };
    const again: Arrival = { ...arrival, receivedAtMs: 1_020 };
    const cutOff: Arrival = { ...arrival, receivedAtMs: 1_030, answer: "none" };

    const ledger = ledgerOf({ arrivals: [again, cutOff, ...facts.arrivals, refused] });
    const never = ledgerOf({ arrivals: [refused, { ...refused, receivedAtMs: 1_015 }] });

    expect([ledger.duplicates, never.duplicates]).to.deep.equal([2, 0]);
    expect(isClean(ledger)).to.equal(true);
  });

  it("calls arrivals under two delivery UUIDs doubled, and those with other bytes altered", () => {
    const ledger = ledgerOf({
      arrivals: [...facts.arrivals, { ...arrival, delivery: "delivery-3" }, { ...toSeven, digest: "b" }],
    });

    expect(ledger.doubled).to.deep.equal(["/all on_create ada 1"]);
    expect(ledger.altered).to.deep.equal(["delivery-2"]);
  });

  it("compares the database with the answers of writers, and decides the unanswered ones by it", () => {
    const ledger = ledgerOf({
      tried: [
        { change: "on_create ada 1", outcome: "unanswered" },
        { change: "on_create ada 2", outcome: "unanswered" },
        { change: "on_create ada 3", outcome: "acknowledged" },
        { change: "on_create ada 4", outcome: "refused" },
      ],
    });

    expect(ledger.changes.unknown).to.deep.equal({ committed: 1, not: 1 });
    expect(ledger.broken).to.deep.equal(["acknowledged: on_create ada 3"]);
    expect(isClean(ledger)).to.equal(false);
  });
});
