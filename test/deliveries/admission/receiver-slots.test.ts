import { expect } from "chai";
import {
  createReceiverSlots,
  type SlotReservation,
  type ReceiverSlots,
  type Used,
} from "../../../src/deliveries/admission/receiver-slots.ts";
import {
  attempt,
  begunOf,
  enter,
  holder,
  stateOf,
  visit,
  visitAll,
  type Visit,
} from "../../support/slot-visits.ts";
import { until } from "../../support/wait.ts";

/** Longer than any test waits. */
const never = 600_000;

describe("createReceiverSlots", () => {
  let nowMs: number;

  beforeEach(() => {
    nowMs = 50_000;
  });

  const create = (options: Partial<Parameters<typeof createReceiverSlots>[0]> = {}): ReceiverSlots =>
    createReceiverSlots({
      slots: 8,
      perUser: 8,
      perReceiver: 2,
      livelyLimit: 0,
      patienceMs: never,
      now: () => nowMs,
      ...options,
    });

  describe("of many receivers that begin to hang", () => {
    const names = ["a", "b", "c", "d", "e"];
    const hang = (slots: ReceiverSlots): readonly (Visit | undefined)[] => {
      names.forEach((origin, user) => attempt(slots, 10, origin, user));
      const begun = names.slice(0, 4).map((origin, user) => visit(slots, origin, user));
      nowMs += 1_001;
      return begun;
    };

    it("leaves half of the slots to the others, and gives the silent no more", () => {
      const slots = create();
      hang(slots);

      expect(names.slice(0, 4).map((origin, user) => visit(slots, origin, user))).to.deep.equal(
        Array.from({ length: 4 }),
      );
      expect(begunOf(visitAll(slots, "e", 4))).to.equal(2);
      expect(begunOf(visitAll(slots, "new", 9))).to.equal(1);
      expect(begunOf(visitAll(slots, "newer", 10))).to.equal(1);
    });

    it("lets a user with nothing in flight try one of them, up to three quarters of the slots", () => {
      const slots = create();
      attempt(slots, 0, "x", 7);
      attempt(slots, 0, "y", 8);
      attempt(slots, 0, "z", 9);
      hang(slots);

      expect(begunOf(visitAll(slots, "x", 7))).to.equal(1);
      expect(begunOf(visitAll(slots, "y", 8))).to.equal(1);
      expect(begunOf(visitAll(slots, "z", 9))).to.equal(0);
    });

    it("gives those of one user a quarter of the slots", () => {
      const slots = create();
      for (const origin of names) attempt(slots, 0, origin, 7);

      expect(names.map((origin) => visit(slots, origin, 7)?.state)).to.deep.equal([
        "begun",
        "begun",
        undefined,
        undefined,
        undefined,
      ]);
    });

    it("counts those without an answer as silent until they answer", () => {
      const slots = create();
      const [first, ...others] = hang(slots);
      first?.release(0);
      visit(slots, "e", 4);
      visit(slots, "lively", 0);
      nowMs += 1_001;

      expect(visit(slots, "a", 0)).to.equal(undefined);
      for (const other of others) other?.release(5);
      const again = visit(slots, "a", 0);
      again?.release(5);
      expect(begunOf(visitAll(slots, "a", 0))).to.equal(2);
    });

    it("leaves slots to users who come later, while nobody knows yet that they hang", () => {
      const slots = create({ slots: 48, perUser: 24, perReceiver: 12 });
      const fill = (user: number): number =>
        Array.from({ length: 30 }, (_, index) => visit(slots, `new ${user} ${index}`, user)).filter(
          (one) => one?.state === "begun",
        ).length;

      expect([1, 2, 3, 4, 5].map(fill)).to.deep.equal([24, 12, 6, 3, 2]);
      expect(visit(slots, "a", 6)?.state).to.equal("begun");
    });

    it("counts one as silent also after an attempt that was not made", () => {
      const slots = create();
      attempt(slots, 0, "x", 7);
      visit(slots, "x", 7)?.release();
      hang(slots);

      expect(begunOf(visitAll(slots, "x", 7))).to.equal(1);
    });

    it("gives one of them a slot when there is only one slot", () => {
      const slots = create({ slots: 1 });
      visit(slots, "a", 0)?.release(0);

      expect(visit(slots, "a", 0)?.state).to.equal("begun");
    });
  });

  describe("of a receiver that is not known to answer quickly", () => {
    it("gives each its share, and delays no other user", () => {
      const slots = create();

      expect(visitAll(slots).map(stateOf)).to.deep.equal(["begun", "begun"]);
      expect(visitAll(slots, "b").map(stateOf)).to.deep.equal(["begun", "begun"]);
    });

    it("gives each user a share of all slots, over all receivers", () => {
      const slots = create({ perUser: 3 });

      const counts = ["a", "b", "c"].map((origin) => visitAll(slots, origin).length);

      expect(counts).to.deep.equal([2, 1, 0]);
      expect(visitAll(slots, "c", 2)).to.have.length(2);
    });

    it("gives out all slots and no more, and lets others wait", () => {
      const slots = create({ slots: 3 });
      const visits = ["a", "b", "c"].flatMap((origin, user) => visitAll(slots, origin, user));
      expect(visits.map(stateOf)).to.deep.equal(["begun", "begun", "begun", "waits", "waits", "waits"]);

      visits[0]?.release();

      expect(visits.map(stateOf)).to.deep.equal(["begun", "begun", "begun", "waits", "begun", "waits"]);
    });

    it("counts reserved places until they are released", () => {
      const slots = create();
      const places = [slots.reserve(holder()), slots.reserve(holder())] as [SlotReservation, SlotReservation];
      expect(slots.reserve(holder())).to.equal(undefined);

      places[0].leave();

      expect(visitAll(slots)).to.have.length(1);
      expect(enter(places[1]).state).to.equal("begun");
    });

    it("frees a slot once, even when it is released twice", () => {
      const slots = create();
      const [first] = visitAll(slots);

      first?.release();
      first?.release();

      expect(visitAll(slots)).to.have.length(1);
    });
  });

  describe("of a receiver that answers quickly", () => {
    // The latest attempt has a weight of a fifth; 0 is no answer.
    for (const [durationsMs, begun] of [
      [[1], 6],
      [[5_000], 6],
      [[5_001], 2],
      [[100, 24_600], 6],
      [[100, 24_601], 2],
      [[100, 0], 2],
      [[100, 0, 5_001], 2],
    ] as const) {
      it(`begins ${begun} attempts of eight slots after attempts of ${durationsMs.join(" and ")} ms`, () => {
        const slots = create({ livelyLimit: 6 });
        for (const durationMs of durationsMs) attempt(slots, durationMs);

        expect(begunOf(visitAll(slots))).to.equal(begun);
      });
    }

    it("keeps the usual time when no attempt was made", () => {
      const slots = create({ livelyLimit: 6 });
      attempt(slots, 100);
      visit(slots)?.release();

      expect(begunOf(visitAll(slots))).to.equal(6);
    });

    it("leaves the others their slots beyond its share", () => {
      const slots = create({ livelyLimit: 6, perUser: 2 });
      attempt(slots, 100);
      const others = [...visitAll(slots, "b", 2), visit(slots, "c", 3) as Visit];
      expect(others.map(stateOf)).to.deep.equal(["begun", "begun", "begun"]);

      const visits = visitAll(slots);

      expect(begunOf(visits)).to.equal(3);
      others[0]?.release();
      expect(begunOf(visits)).to.equal(4);
      expect(["d", "e"].map((origin, user) => begunOf(visitAll(slots, origin, 4 + user)))).to.deep.equal([
        1, 1,
      ]);
    });

    for (const [durationMs, perReceiver, waiting] of [
      [100, 2, 2],
      [50, 2, 4],
      [10, 4, 40],
      [1, 8, 200],
    ] as const) {
      it(`lets ${waiting} wait for ${perReceiver} slots of ${durationMs} ms: a tenth of a second, and 200 at most`, () => {
        const slots = create({ slots: 12, perReceiver });
        attempt(slots, durationMs);

        const visits = visitAll(slots);

        expect([begunOf(visits), visits.length - begunOf(visits)]).to.deep.equal([perReceiver, waiting]);
      });
    }

    it("gives a user with none a free slot, however many attempts of others wait", () => {
      const slots = create({ livelyLimit: 6 });
      for (const [user, origin] of ["a", "b"].entries()) {
        attempt(slots, 1, origin, user);
        visitAll(slots, origin, user);
      }

      expect(visit(slots, "c", 2)?.state).to.equal("begun");
      expect(visit(slots, "d", 3)).to.equal(undefined);
    });

    it("passes freed slots on in the order of arrival", () => {
      const slots = create({ perReceiver: 1 });
      attempt(slots, 25);
      const visits = visitAll(slots);
      expect(visits.map(stateOf)).to.deep.equal(["begun", "waits", "waits", "waits", "waits"]);

      visits[0]?.release(25);
      expect(visits.slice(0, 3).map(stateOf)).to.deep.equal(["begun", "begun", "waits"]);
      visits[1]?.release(25);
      expect(visits.slice(0, 4).map(stateOf)).to.deep.equal(["begun", "begun", "begun", "waits"]);
    });

    it("passes them on to one of each line in turn: a long line does not delay the others", () => {
      const slots = create({ slots: 1, perReceiver: 1 });
      attempt(slots, 25, "a", 1);
      const many = visitAll(slots, "a", 1);
      const other = visit(slots, "b", 2);

      many[0]?.release(25);
      many[1]?.release(25);

      expect([stateOf(other as Visit), begunOf(many)]).to.deep.equal(["begun", 2]);
    });
  });

  describe("of waiting attempts", () => {
    it("gives up those without a free slot within the patience, and their places", async () => {
      const slots = create({ slots: 1, patienceMs: 40 });
      const first = visit(slots) as Visit;
      const waiting = visitAll(slots, "b", 2);
      expect(waiting.map(stateOf)).to.deep.equal(["waits", "waits"]);
      nowMs += 41;
      const late = visit(slots, "c", 3) as Visit;

      await until(() => waiting.every(({ state }) => state === "given up"), {
        what: "the end of the patience",
      });

      expect([first, late].map(stateOf)).to.deep.equal(["begun", "waits"]);
      first.release();
      expect(late.state).to.equal("begun");
      late.release();
      expect(visitAll(slots, "b", 2).map(stateOf)).to.deep.equal(["begun", "waits"]);
    });

    it("begins all of them at once when the share of their receiver grows", () => {
      const waiting = new Set<() => void>();
      let share = 1;
      const shared: Used = { inUse: 0, pending: 0 };
      const mostOf = (): { all: number; own: number } => ({ all: share, own: share });
      const slots = create({ perReceiver: { waiting, usedOf: () => shared, mostOf } });
      attempt(slots, 25);
      const visits = visitAll(slots);
      expect(visits.map(stateOf)).to.deep.equal(["begun", "waits", "waits", "waits", "waits"]);

      share = 3;
      for (const admit of waiting) admit();

      expect(begunOf(visits)).to.equal(3);
    });

    it("gives up later ones too, after a time in which none waited", async () => {
      const slots = create({ slots: 1, patienceMs: 40 });
      visit(slots);
      for (const origin of ["b", "c"]) {
        const waiting = visit(slots, origin, 2) as Visit;
        nowMs += 41;
        await until(() => waiting.state === "given up", { what: `the end of the patience of ${origin}` });
      }
    });

    it("begins them at once when those before end in the course of their own begin", () => {
      const slots = create({ slots: 1, perReceiver: 50, perUser: 50 });
      const [first] = [visit(slots)] as [Visit];
      let begun = 0;
      for (let count = 0; count < 20; count++)
        slots.reserve(holder())?.enter({
          begin(release) {
            begun += 1;
            release();
          },
          giveUp: () => expect.fail("given up"),
        });

      first.release();

      expect(begun).to.equal(20);
      expect(visit(slots)?.state).to.equal("begun");
    });
  });

  it("leaks no place after any end of a reservation", () => {
    const slots = create({ livelyLimit: 6, perUser: 5 });
    const open: (SlotReservation | Visit)[] = [];
    let seed = 7;
    const pick = (below: number): number => {
      seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
      return Math.floor((seed / 2 ** 32) * below);
    };
    const act = (isEnd: boolean): void => {
      const place = isEnd ? undefined : slots.reserve(holder("abc"[pick(3)], pick(3)));
      if (place !== undefined) open.push(place);
      const [one] = open.splice(pick(open.length), 1);
      if (one === undefined) return;
      if ("leave" in one) {
        if (pick(3) === 0) one.leave();
        else open.push(enter(one));
      } else if (one.state === "begun") one.release([undefined, 0, 1 + pick(200)][pick(3)]);
      else open.push(one);
    };
    for (let step = 0; step < 5_000; step++) act(false);
    while (open.length > 0) act(true);

    // Every receiver is silent after this: they have half of the slots, with one for the third
    // user.
    for (const origin of "abc") for (const user of [0, 1, 2]) attempt(slots, 0, origin, user);
    const counts = [...visitAll(slots, "a", 0), ...visitAll(slots, "b", 1), ...visitAll(slots, "c", 2)].map(
      stateOf,
    );
    expect(counts).to.deep.equal(Array(5).fill("begun"));
    expect(visitAll(slots, "d", 4).map(stateOf)).to.deep.equal(["begun", "begun"]);
    expect(visitAll(slots, "e", 5).map(stateOf)).to.deep.equal(["begun", "waits"]);
  });

  it("remembers the usual times of 1,000 idle users and receivers, the last used ones", () => {
    const slots = create({ perReceiver: 1, livelyLimit: 2 });
    for (const origin of ["early", "late"]) attempt(slots, 100, origin);
    for (let count = 0; count < 998; count++) {
      if (count === 500) attempt(slots, 100, "late");
      attempt(slots, 100, `stranger ${count}`);
    }

    const late = visitAll(slots, "late");
    expect(begunOf(late)).to.equal(2);
    for (const one of late) one.release();
    expect(begunOf(visitAll(slots, "early"))).to.equal(1);
  });

  it("counts a user's attempts also when more than 1,000 users and receivers are at work at once", () => {
    const slots = create({ slots: 10_000, perUser: 2 });
    const first = visit(slots, "x");
    for (let count = 0; count < 600; count++) visit(slots, `stranger ${count}`, 1_000 + count);

    expect([first, visit(slots, "y"), visit(slots, "z")].map((one) => one?.state)).to.deep.equal([
      "begun",
      "begun",
      undefined,
    ]);
  });
});
