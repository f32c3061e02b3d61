import { expect } from "chai";
import type { Arrival } from "../../bench/chaos/ledger.ts";
import { byKind, type DoneFault, recoveriesOf, type Recovery } from "../../bench/chaos/recovery.ts";

const killed: DoneFault = {
  lane: "processes",
  kind: "dispatcher killed",
  waitMs: 0,
  holdMs: 0,
  targets: [0],
  startedAtMs: 10_000,
  healedAtMs: 12_000,
};
const down: DoneFault = { ...killed, lane: "receivers", kind: "receiver down", targets: [1] };

let number = 0;
function arrival(occurredAtMs: number, receivedAtMs: number, changes: Partial<Arrival> = {}): Arrival {
  number += 1;
  return {
    receiver: 0,
    path: "/all",
    change: `on_create ada ${number}`,
    delivery: `delivery-${number}`,
    event: `event-${number}`,
    occurredAtMs,
    receivedAtMs,
    digest: "a",
    isGenuine: true,
    answer: "accepted",
    ...changes,
  };
}

function recover(faults: readonly DoneFault[], arrivals: readonly Arrival[]): Recovery | undefined {
  return recoveriesOf({
    faults,
    arrivals,
    steady: 0,
    faulty: [1, 2],
    owned: ["/all"],
    sources: ["ada", "sql"],
  })[0];
}

describe("recoveriesOf", () => {
  const ofSql = { change: "on_create sql 1" };

  it("waits until a change of each source made after the fault has arrived", () => {
    const arrivals = [
      arrival(11_000, 12_001, { change: "on_create sql 0" }),
      arrival(12_100, 12_500),
      arrival(12_600, 12_900, ofSql),
    ];

    expect(recover([killed], arrivals)?.flowing).to.deep.equal({ ms: 900, isDisturbed: false });
    expect(recover([killed], arrivals.slice(0, 2))?.flowing).to.equal(undefined);
  });

  it("waits until all changes from 2 s before the fault to its end have arrived", () => {
    const arrivals = [
      arrival(7_999, 90_000),
      arrival(8_000, 14_000),
      arrival(11_000, 13_000),
      arrival(12_001, 80_000),
    ];

    expect(recover([killed], arrivals)?.caughtUp?.ms).to.equal(2_000);
  });

  it("counts the first time that a delivery was accepted, and no other POST", () => {
    const first = arrival(9_000, 12_300, { answer: "refused" });
    const arrivals = [
      first,
      { ...first, receivedAtMs: 15_000, answer: "accepted" as const },
      { ...first, receivedAtMs: 20_000, answer: "accepted" as const },
    ];

    expect(recover([killed], arrivals)?.caughtUp?.ms).to.equal(3_000);
  });

  it("uses the webhook itself for an action of its owner", () => {
    const paused: DoneFault = { ...killed, lane: "owners", kind: "webhook paused" };
    const arrivals = [arrival(12_100, 12_200, { path: "/other" }), arrival(12_100, 16_000)];

    expect(recover([paused], arrivals)?.flowing?.ms).to.equal(4_000);
  });

  it("uses the receiver itself for a fault of it", () => {
    const arrivals = [arrival(12_100, 12_200), arrival(12_100, 16_000, { receiver: 2 })];

    expect(recover([down], arrivals)?.flowing?.ms).to.equal(4_000);
  });

  for (const [what, other, isDisturbed] of [
    ["began before it was over", { startedAtMs: 13_000, healedAtMs: 20_000 }, true],
    ["was there already", { startedAtMs: 11_000, healedAtMs: 12_500 }, true],
    ["was over before", { startedAtMs: 9_000, healedAtMs: 12_000 }, false],
    ["began afterwards", { startedAtMs: 14_000, healedAtMs: 20_000 }, false],
  ] as const) {
    it(`reports whether another fault overlaps: one that ${what}`, () => {
      const faults = [killed, { ...killed, ...other }];

      expect(recover(faults, [arrival(11_000, 14_000)])?.caughtUp).to.deep.equal({ ms: 2_000, isDisturbed });
    });
  }

  it("attributes nothing to a fault of a receiver", () => {
    const faults = [killed, { ...down, startedAtMs: 13_000, healedAtMs: 20_000 }];

    expect(recover(faults, [arrival(11_000, 14_000)])?.caughtUp?.isDisturbed).to.equal(false);
  });
});

const span = (ms: number, isDisturbed = false): Recovery["flowing"] => ({ ms, isDisturbed });

describe("byKind", () => {
  it("separates overlapped faults, and leaves out unknown times", () => {
    const kind = "queues purged";
    const [line] = byKind([
      { kind, flowing: span(100), caughtUp: undefined },
      { kind, flowing: span(300), caughtUp: undefined },
      { kind, flowing: span(900, true), caughtUp: undefined },
    ]);

    expect(line?.count).to.equal(3);
    expect([line?.flowing.alone.p50, line?.flowing.alone.max]).to.deep.equal([100, 300]);
    expect(line?.flowing.disturbed.max).to.equal(900);
    expect(line?.caughtUp.alone.count).to.equal(0);
  });
});
