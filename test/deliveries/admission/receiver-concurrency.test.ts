import { expect } from "chai";
import {
  createAdmission,
  type Admission,
  type Done,
  type SlotRequest,
} from "../../../src/deliveries/admission/admission.ts";
import { createSharedSlots, type SharedSlots } from "../../../src/deliveries/admission/shared-slots.ts";
import { createMemoryLog } from "../../support/http.ts";
import { createOwnSlots } from "../../support/shared-slots.ts";
import { success } from "../../support/work.ts";

type Lane = SlotRequest["lane"];

const url = "https://hooks.example.com/hook";
const joinAfterMs = 4_000;

const request = (lane: Lane, to = url): SlotRequest => ({
  userId: 1,
  url: to,
  lane,
  bytes: 0,
  isUrgent: false,
});

/** Adds to `begun` when its attempt begins. Returns whether there was a place. */
const enter = (admission: Admission, lane: Lane, begun: Done[] = []): boolean => {
  const place = admission.reserve(request(lane));
  place?.enter({ begin: (done) => begun.push(done), giveUp: () => expect.fail("gave up") });
  return place !== undefined;
};
/** Enters while there are places, and returns the attempts that have begun. */
const enterAll = (admission: Admission, ...lanes: readonly Lane[]): Done[] => {
  const begun: Done[] = [];
  for (const lane of lanes) while (enter(admission, lane, begun));
  return begun;
};
/** Records an answer of the receiver after `durationMs`. */
const attempt = (admission: Admission, durationMs: number): void => {
  for (const lane of ["first", "retry"] as const) {
    const begun: Done[] = [];
    enter(admission, lane, begun);
    begun[0]?.({ ...success(), durationMs });
  }
};

// `webhooks.receiverConcurrency`; admission.test.ts has the rest.
describe("createAdmission with a number of slots for each receiver", () => {
  let nowMs: number;
  let shared: SharedSlots;

  beforeEach(() => {
    nowMs = 50_000;
    shared = createOwnSlots();
  });

  const create = (perReceiver: number | undefined, sharedSlots = shared): Admission =>
    createAdmission({
      concurrency: 64,
      perReceiver,
      sharedSlots,
      hasBreakers: false,
      timeoutMs: 4_000,
      sql: () => expect.fail("asked the database"),
      log: createMemoryLog().log,
      drained: () => Promise.resolve(),
      now: () => nowMs,
      random: () => 0.5,
    });
  for (const limit of [1, 2, 3, 8]) {
    it(`begins ${limit} attempts of both lanes together`, () => {
      expect(enterAll(create(limit), "first", "retry")).to.have.length(limit);
      shared = createOwnSlots();
      expect(enterAll(create(limit), "retry", "first")).to.have.length(limit);
    });
  }

  for (const [limit, retries] of [
    [1, 1],
    [7, 1],
    [8, 2],
  ] as const) {
    it(`gives retries ${retries} of ${limit}, so that something is left for new deliveries`, () => {
      expect(enterAll(create(limit), "retry")).to.have.length(retries);
    });
  }

  it("begins no more than that when others wait, even for a quick receiver", () => {
    const admission = create(3);
    attempt(admission, 1);

    expect(enterAll(admission, "first", "retry")).to.have.length(3);
    expect(admission.roomOf(request("first"))).to.equal(0);
  });

  it("has the lanes take turns at a single slot", () => {
    const admission = create(1);
    attempt(admission, 20);
    const order: Lane[] = [];
    const begun: Done[] = [];
    for (const lane of ["first", "first", "first", "retry", "retry"] as const)
      admission.reserve(request(lane))?.enter({
        begin(done) {
          order.push(lane);
          begun.push(done);
        },
        giveUp: () => expect.fail("gave up"),
      });
    expect(begun).to.have.length(1);

    for (let ended = 0; ended < 5; ended += 1) {
      begun[ended]?.({ ...success(), durationMs: 20 });
      expect(begun).to.have.length(Math.min(5, ended + 2));
    }

    expect(order).to.deep.equal(["first", "retry", "first", "retry", "first"]);
  });

  it("counts the attempts in flight of the configuration before a reload", () => {
    const before = enterAll(create(2), "first");
    const after = create(2);
    expect(enterAll(after, "first", "retry")).to.have.length(0);

    before[0]?.(success());

    expect(enterAll(after, "first", "retry")).to.have.length(1);
  });

  it("counts each origin for itself", () => {
    const admission = create(1);
    enterAll(admission, "first");

    expect(admission.reserve(request("first", "https://hooks.example.com:8443/"))).to.not.equal(undefined);
    expect(admission.reserve(request("first", "https://hooks.example.com/other"))).to.equal(undefined);
  });

  it("sends nothing without a share of the receiver, and reports that its deliveries are for others", () => {
    const two = ["a", "b"].map((id) => createSharedSlots({ id, joinAfterMs, now: () => nowMs }));
    for (const one of two) one.see(["a", "b"]);
    nowMs += joinAfterMs;
    for (const one of two) one.see(["a", "b"]);

    const admissions = two.map((one) => create(1, one));

    const having = admissions.filter((one) => one.hasShareOf(url));
    expect(having).to.have.length(1);
    for (const admission of admissions) {
      const count = admission === having[0] ? 1 : 0;
      expect(admission.roomOf(request("first"))).to.equal(count);
      expect(admission.refusalOf(request("retry"))).to.equal(count === 1 ? undefined : "busy");
      expect(enterAll(admission, "first", "retry")).to.have.length(count);
    }
  });

  it("has a share of every receiver without such a number", () => {
    const admission = create(undefined, createSharedSlots({ id: "a", joinAfterMs, now: () => nowMs }));

    expect(admission.hasShareOf(url)).to.equal(true);
    expect(enterAll(admission, "first", "retry")).to.have.length(16);
  });

  it("begins no waiting attempt without a share, and continues when it is back", () => {
    const slots = createSharedSlots({ id: "a", joinAfterMs, now: () => nowMs });
    slots.see(["a"]);
    const admission = create(1, slots);
    attempt(admission, 20);
    const begun: Done[] = [];
    enter(admission, "first", begun);
    enter(admission, "first", begun);
    // With enough other receivers, another one shares the slot.
    const others = Array.from({ length: 50 }, (_, index) => `other ${index}`);
    slots.see(["a", ...others]);
    expect(slots.shareOf("https://hooks.example.com", 1)).to.equal(0);

    begun[0]?.(success());
    expect(begun).to.have.length(1);
    slots.see(["a"]);

    expect(begun).to.have.length(2);
  });
});
