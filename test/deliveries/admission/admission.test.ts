import { expect } from "chai";
import {
  createAdmission,
  type Admission,
  type SlotRequest,
  type Done,
} from "../../../src/deliveries/admission/admission.ts";
import { createSharedSlots, type SharedSlots } from "../../../src/deliveries/admission/shared-slots.ts";
import type { AttemptResult } from "../../../src/deliveries/delivery.ts";
import { createMemoryLog } from "../../support/http.ts";
import { createOwnSlots } from "../../support/shared-slots.ts";
import { failure, success } from "../../support/work.ts";

const url = "https://hooks.example.com/s3cret?token=s3cret";

const candidate = (to: string, overrides: Partial<SlotRequest> = {}): SlotRequest => ({
  userId: 1,
  url: to,
  lane: "first",
  bytes: 0,
  isUrgent: false,
  ...overrides,
});

const timeout = (durationMs = 4_000): AttemptResult => ({
  startedAt: new Date(),
  durationMs,
  error: "timeout",
  isResponseTruncated: false,
});

const reasonOf = (admitted: Done | string): string => (typeof admitted === "string" ? admitted : "go");

describe("createAdmission", () => {
  let nowMs: number;
  let lines: Record<string, unknown>[];
  let admission: Admission;

  beforeEach(() => create());

  function create({
    hasBreakers = true,
    timeoutMs = 4_000,
    perReceiver,
    concurrency = 64,
    sharedSlots = createOwnSlots(),
  }: {
    readonly sharedSlots?: SharedSlots;
    readonly concurrency?: number;
    readonly hasBreakers?: boolean;
    readonly timeoutMs?: number;
    readonly perReceiver?: number;
  } = {}): void {
    const memory = createMemoryLog();
    lines = memory.lines;
    nowMs = 50_000;
    admission = createAdmission({
      concurrency,
      perReceiver,
      sharedSlots,
      hasBreakers,
      timeoutMs,
      sql: () => expect.fail("asked the database"),
      log: memory.log,
      drained: () => Promise.resolve(),
      now: () => nowMs,
      random: () => 0.5,
    });
  }

  /** Begins an attempt, or returns the reason of the refusal. */
  const admit = (to = url, overrides: Partial<SlotRequest> = {}): Done | string => {
    const wanted = candidate(to, overrides);
    const refusal = admission.refusalOf(wanted);
    const place = admission.reserve(wanted);
    if (place === undefined) return refusal ?? "no room for its bytes";
    let admitted: Done | string = "waits";
    place.enter({ begin: (done) => (admitted = done), giveUp: (reason) => (admitted = reason) });
    return admitted;
  };
  const begin = (to = url, overrides: Partial<SlotRequest> = {}): Done => {
    const admitted = admit(to, overrides);
    if (typeof admitted === "string") throw new Error(`expected to be admitted, but: ${admitted}`);
    return admitted;
  };
  /** Makes attempts, one after the other, with the same result. */
  const attempt = (result: AttemptResult | undefined, times = 1, to = url): void => {
    for (let count = 0; count < times; count++) begin(to)(result);
  };

  describe("of slots", () => {
    beforeEach(() => create({ perReceiver: 2 }));

    it("gives one origin its share of both lanes, for any path and user", () => {
      begin();
      begin(url, { lane: "retry" });

      const admitted = [
        admit("https://hooks.example.com/other", { userId: 2 }),
        admit("https://hooks.example.com:443/", { lane: "retry" }),
        admit("http://hooks.example.com/"),
        admit("https://hooks.example.com:8443/"),
      ];

      expect(admitted.map(reasonOf)).to.deep.equal(["busy", "busy", "go", "go"]);
    });

    it("tells the room for a receiver, down to its last slot", () => {
      const wanted = candidate(url);
      const told = [0, 1, 2].map((count) => {
        if (count > 0) begin();
        return `${admission.roomOf(wanted)} ${admission.refusalOf(wanted)}`;
      });

      expect(told).to.deep.equal(["2 undefined", "1 undefined", "0 busy"]);
    });

    it("has no share of a receiver before others know this dispatcher, unless there is no limit", () => {
      const sharedSlots = createSharedSlots({ id: "one", joinAfterMs: 1_000, now: () => nowMs });
      expect(admission.hasShareOf(url)).to.equal(true);
      create({ perReceiver: 2, sharedSlots });
      expect(admission.hasShareOf(url)).to.equal(false);
      create({ sharedSlots });
      expect(admission.hasShareOf(url)).to.equal(true);
    });

    it("gives one user half of each lane, over all receivers", () => {
      create({ perReceiver: 100 });
      for (let count = 0; count < 24; count++) begin(`https://${count}.example.com/`);
      for (let count = 0; count < 8; count++) begin(`https://${count}.example.com/`, { lane: "retry" });

      expect(reasonOf(admit())).to.equal("busy");
      expect(reasonOf(admit(url, { lane: "retry" }))).to.equal("busy");
      expect(reasonOf(admit(url, { userId: 2 }))).to.equal("go");
    });

    for (const [usualMs, slots] of [
      [undefined, 12],
      [5_001, 12],
      [100, 36],
      [0, 36],
    ] as const) {
      it(`gives a receiver that usually takes ${usualMs} ms ${slots} of the 48 slots for first attempts by default`, () => {
        create();
        if (usualMs !== undefined) attempt({ ...success(), durationMs: usualMs });
        for (let count = 0; count < slots; count++) begin();

        expect(reasonOf(admit())).to.not.equal("go");
      });
    }

    it("limits a receiver to its share after an attempt without an answer, even a quick failure", () => {
      create();
      attempt(success());
      attempt({ ...timeout(1), error: "refused" });
      for (let count = 0; count < 12; count++) begin();

      expect(reasonOf(admit())).to.equal("busy");
    });

    it("gives retries a quarter of a receiver's slots at most", () => {
      create({ perReceiver: 8 });
      const admitted = Array.from({ length: 3 }, () => admit(url, { lane: "retry" }));

      expect(admitted.map(reasonOf)).to.deep.equal(["go", "go", "busy"]);
    });

    it("limits a receiver to the configured number, even when it answers quickly", () => {
      create({ perReceiver: 4 });
      attempt({ ...success(), durationMs: 100 });
      const admitted = Array.from({ length: 5 }, () => admit());

      expect(admitted.map(reasonOf)).to.deep.equal(["go", "go", "go", "go", "waits"]);
    });

    it("counts an attempt that was not made as neither an answer nor a silence", () => {
      create();
      attempt({ ...success(), durationMs: 100 });
      attempt(undefined);
      const admitted = Array.from({ length: 36 }, () => admit());

      expect(new Set(admitted.map(reasonOf))).to.deep.equal(new Set(["go"]));
    });

    it("frees the slot when the attempt is over, and when its breaker does not let it through", () => {
      create({ perReceiver: 3 });
      attempt(timeout(), 10);
      nowMs += 4_000;
      const places = [admission.reserve(candidate(url)), admission.reserve(candidate(url))];
      const reasons: string[] = [];
      let probe: Done | undefined;
      for (const place of places)
        place?.enter({ begin: (done) => (probe = done), giveUp: (reason) => reasons.push(reason) });

      expect(reasons).to.deep.equal(["silent"]);
      const other = "https://hooks.example.com/other";
      expect([admit(other), admit(other), admit(other)].map(reasonOf)).to.deep.equal(["go", "go", "busy"]);
      probe?.(timeout());
      expect(reasonOf(admit(other))).to.equal("go");
    });

    it("is busy for a place that gave up, and frees it with its bytes", async () => {
      create({ perReceiver: 64, concurrency: 1 });
      const done = begin();
      const large = { userId: 2, bytes: 100 * 1024 ** 2 };
      const place = admission.reserve(candidate("https://other.example.com/", large));
      const givenUp = new Promise((resolve) => {
        place?.enter({ begin: () => resolve("begun"), giveUp: resolve });
      });
      nowMs += 1_001;

      const reason = await givenUp;

      expect(reason).to.equal("busy");
      done(success());
      expect(reasonOf(admit(url, { bytes: 1 }))).to.equal("go");
    });
  });

  it("serves users with the fewest attempts in flight first, then those who waited longest", () => {
    create({ concurrency: 64 });
    begin(url, { userId: 1, lane: "retry" })(success());
    nowMs += 1;
    begin(url, { userId: 2 })(success());
    begin(url, { userId: 3 });
    begin(url, { userId: 5, lane: "retry" });

    const ordered = admission.inTurn([[3], [5], [2], [1], [4], []], ([userId]) => userId);

    expect(ordered).to.deep.equal([[4], [], [1], [2], [3], [5]]);
  });

  describe("of bytes", () => {
    const mebibyte = 1024 ** 2;
    const big = { bytes: 20 * mebibyte };

    it("limits the bodies in memory to 32 MiB, except for a single larger one", () => {
      const done = begin(url, { bytes: 100 * mebibyte });
      expect(reasonOf(admit(url, { userId: 2, bytes: 1 }))).to.equal("no room for its bytes");

      done(success());

      begin(url, big);
      expect(reasonOf(admit(url, { userId: 2, ...big }))).to.equal("no room for its bytes");
      expect(reasonOf(admit(url, { userId: 2, bytes: 12 * mebibyte }))).to.equal("go");
    });

    it("limits one user to half of them", () => {
      const some = { bytes: 9 * mebibyte };
      const done = begin(url, some);
      expect(reasonOf(admit(url, some))).to.equal("no room for its bytes");
      expect(reasonOf(admit(url, { userId: 2, ...some }))).to.equal("go");

      done(success());

      expect(reasonOf(admit(url, some))).to.equal("go");
    });

    it("leaves some to users who come later", () => {
      const fill = (userId: number): number => {
        let count = 0;
        while (reasonOf(admit(url, { userId, bytes: mebibyte })) === "go") count += 1;
        return count;
      };
      create({ perReceiver: 64 });

      expect([1, 2, 3].map(fill)).to.deep.equal([16, 8, 4]);
      expect(reasonOf(admit(url, { userId: 4, bytes: 4 * mebibyte }))).to.equal("go");
    });

    it("returns them and the slot after any end of an attempt", () => {
      create({ concurrency: 1 });
      for (const end of [
        () => admission.reserve(candidate(url, big))?.leave(),
        () => begin(url, big)(),
        () => begin(url, big)(success()),
        () => begin(url, big)(timeout()),
      ]) {
        end();
        begin(url, big)(success());
      }
    });

    it("returns them when the breaker does not permit the attempt", () => {
      attempt(timeout(), 10);
      nowMs += 4_000;
      const place = admission.reserve(candidate(url, { bytes: 12 * mebibyte }));
      const probe = begin();

      place?.enter({ begin: () => expect.fail("begun"), giveUp: () => undefined });

      probe(success());
      expect(reasonOf(admit(url, big))).to.equal("go");
    });
  });

  describe("of breakers", () => {
    it("holds deliveries back after ten attempts that hung, for the attempt's timeout", () => {
      attempt(timeout(), 10);

      expect(reasonOf(admit())).to.equal("silent");
      expect(admission.reserve(candidate(url))).to.equal(undefined);
      expect(admission.roomOf(candidate(url))).to.equal(0);
      nowMs += 3_999;
      expect(reasonOf(admit())).to.equal("silent");
      expect(admission.breakerCounts()).to.deep.equal({ open: 1, halfOpen: 0 });
    });

    for (const [what, result] of [
      ["2xx", success()],
      ["any other status", failure()],
    ] as const) {
      it(`counts ${what} as an answer`, () => {
        attempt(timeout(), 9);
        attempt(result);
        attempt(timeout(), 9);

        expect(reasonOf(admit())).to.equal("go");
      });
    }

    for (const error of ["timeout", "dns", "refused", "reset", "tls", "unreachable", "protocol"] as const) {
      it(`counts ${error} after a second, but not an immediate one`, () => {
        attempt({ ...timeout(999), error }, 20);
        expect(reasonOf(admit())).to.equal("go");

        attempt({ ...timeout(1_000), error }, 10);
        expect(reasonOf(admit())).to.equal("silent");
      });
    }

    it("counts a failure that took half the timeout, when that is less than a second", () => {
      create({ timeoutMs: 500 });
      attempt(timeout(249), 10);
      expect(reasonOf(admit())).to.equal("go");

      attempt(timeout(250), 10);
      expect(reasonOf(admit())).to.equal("silent");
    });

    it("counts an answer whose body never ends as none", () => {
      attempt({ ...timeout(), statusCode: 200 }, 10);

      expect(reasonOf(admit())).to.equal("silent");
    });

    it("has one for each user and URL: a hanging path on a shared host delays nothing else", () => {
      attempt(timeout(), 10);

      expect(reasonOf(admit("https://hooks.example.com/other"))).to.equal("go");
      expect(reasonOf(admit(url, { userId: 2 }))).to.equal("go");
      expect(reasonOf(admit())).to.equal("silent");
    });

    it("permits the first attempt of a manual retry in any case, and uses its answer", () => {
      attempt(timeout(), 10);
      const place = admission.reserve(candidate(url, { isUrgent: true }));

      place?.enter({ begin: (done) => done(success()), giveUp: () => expect.fail("given up") });

      expect(reasonOf(admit())).to.equal("go");
    });

    it("lets another attempt decide when the probe was not made", () => {
      attempt(timeout(), 10);
      nowMs += 4_000;
      attempt(undefined);

      expect(reasonOf(admit())).to.equal("go");
      expect(reasonOf(admit())).to.equal("silent");
    });

    it("reports when one opens and closes, with only the host of the URL", () => {
      attempt(timeout(), 10);
      nowMs += 4_000;
      attempt(timeout());
      nowMs += 8_000;
      attempt(success());
      attempt(success());

      expect(lines.map(({ event, receiver, error }) => [event, receiver, error])).to.deep.equal([
        ["breaker.opened", "hooks.example.com", "timeout"],
        ["breaker.closed", "hooks.example.com", undefined],
      ]);
      expect(JSON.stringify(lines)).to.not.contain("s3cret");
    });

    it("can be done without", () => {
      expect(admission.workers).to.have.length(1);
      create({ hasBreakers: false });
      expect(admission.workers).to.deep.equal([]);

      attempt(timeout(), 30);

      expect(reasonOf(admit())).to.equal("go");
      expect(admission.breakerCounts()).to.deep.equal({ open: 0, halfOpen: 0 });
    });
  });
});
