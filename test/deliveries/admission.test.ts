import { expect } from "chai";
import {
  createAdmission,
  laneShares,
  type Admission,
  type Admitted,
} from "../../src/deliveries/admission.ts";
import type { AttemptResult } from "../../src/deliveries/delivery.ts";
import type { LeasedDelivery } from "../../src/deliveries/store.ts";
import { createMemoryLog } from "../support/http.ts";
import { failure, success } from "../support/work.ts";

const url = "https://hooks.example.com/s3cret?token=s3cret";

const deliveryTo = (to: string, overrides: Partial<LeasedDelivery> = {}): LeasedDelivery => ({
  id: "1",
  uuid: "",
  eventUuid: "",
  resource: "notes",
  attempt: 0,
  maxAttempts: 3,
  isManual: false,
  updatedAt: new Date(),
  body: Buffer.alloc(0),
  url: to,
  encryptedSecret: Buffer.alloc(0),
  ownerId: null,
  subscriptionId: 1,
  happenedAtMs: 0,
  traceparent: null,
  user: { id: 1, name: "", email: "", isAdmin: false },
  leasedUntil: new Date(),
  ...overrides,
});

const timeout = (durationMs = 4_000): AttemptResult => ({
  startedAt: new Date(),
  durationMs,
  error: "timeout",
  isResponseTruncated: false,
});

const reasonOf = (admitted: Admitted): string => (admitted.kind === "wait" ? admitted.reason : admitted.kind);

describe("laneShares", () => {
  for (const [slots, first, retry] of [
    [64, 48, 16],
    [16, 12, 4],
    [5, 4, 1],
    [2, 1, 1],
    [1, 1, 1],
  ] as const) {
    it(`gives ${retry} of ${slots} slots to retries`, () => {
      expect(laneShares(slots)).to.deep.equal({ first, retry });
    });
  }
});

describe("createAdmission", () => {
  let nowMs: number;
  let lines: Record<string, unknown>[];
  let admission: Admission;

  beforeEach(() => create());

  function create({
    hasBreakers = true,
    timeoutMs = 4_000,
    perReceiver,
  }: {
    readonly hasBreakers?: boolean;
    readonly timeoutMs?: number;
    readonly perReceiver?: number;
  } = {}): void {
    const memory = createMemoryLog();
    lines = memory.lines;
    nowMs = 50_000;
    admission = createAdmission({
      concurrency: 64,
      perReceiver,
      hasBreakers,
      timeoutMs,
      log: memory.log,
      now: () => nowMs,
      random: () => 0.5,
    });
  }

  const admit = (to = url, overrides: Partial<LeasedDelivery> = {}): Promise<Admitted> =>
    admission.admit(deliveryTo(to, overrides), "first");
  /** Makes attempts, one after the other, with the same result. */
  const attempt = async (result: AttemptResult | undefined, times = 1, to = url): Promise<void> => {
    for (let count = 0; count < times; count++) {
      const admitted = await admit(to);
      if (admitted.kind !== "go") throw new Error("expected to be admitted");
      admitted.done(result);
    }
  };

  describe("of slots", () => {
    beforeEach(() => create({ perReceiver: 2 }));

    it("lets one origin have its share of each lane, whatever the path and the user", async () => {
      const delivery = deliveryTo(url);
      const other = { id: 2, name: "", email: "", isAdmin: false };
      await admission.admit(delivery, "first");
      await admission.admit(delivery, "retry");
      nowMs += 1_001;

      const admitted = [
        await admission.admit(deliveryTo("https://hooks.example.com/other", { user: other }), "first"),
        await admission.admit(deliveryTo("https://hooks.example.com:443/"), "retry"),
        await admission.admit(deliveryTo("http://hooks.example.com/"), "first"),
        await admission.admit(deliveryTo("https://hooks.example.com:8443/"), "first"),
      ];

      expect(admitted.map(reasonOf)).to.deep.equal(["busy", "busy", "go", "go"]);
    });

    for (const [usualMs, slots] of [
      [undefined, 12],
      [5_001, 12],
      [100, 36],
      [0, 36],
    ] as const) {
      it(`gives a receiver that usually takes ${usualMs} ms ${slots} of the 48 slots for fresh work, unless told otherwise`, async () => {
        create();
        // Keeps what is usual in mind.
        await admit();
        if (usualMs !== undefined) await attempt({ ...success(), durationMs: usualMs });
        for (let count = 1; count < slots; count++) expect(reasonOf(await admit())).to.equal("go");
        nowMs += 1_001;

        expect(reasonOf(await admit())).to.equal("busy");
      });
    }

    it("takes no more than its share for a receiver that did not answer the last attempt, however soon that was known", async () => {
      create();
      await admit();
      await attempt(success());
      await attempt({ ...timeout(1), error: "refused" });
      for (let count = 1; count < 12; count++) await admit();
      nowMs += 1_001;

      expect(reasonOf(await admit())).to.equal("busy");
    });

    it("frees the slot when the attempt is over, and when its breaker does not let it through", async () => {
      await attempt(timeout(), 10);

      for (let count = 0; count < 3; count++) expect(reasonOf(await admit())).to.equal("silent");
      expect(reasonOf(await admit("https://hooks.example.com/other"))).to.equal("go");
    });
  });

  describe("of breakers", () => {
    it("holds deliveries back after ten attempts that hung, for as long as the attempt's timeout", async () => {
      await attempt(timeout(), 10);

      expect(await admit()).to.deep.equal({ kind: "wait", delayMs: 4_000, reason: "silent" });
      expect(admission.breakerCounts()).to.deep.equal({ open: 1, halfOpen: 0 });
    });

    for (const [what, result] of [
      ["2xx", success()],
      ["any other status", failure()],
    ] as const) {
      it(`counts ${what} as an answer`, async () => {
        await attempt(timeout(), 9);
        await attempt(result);
        await attempt(timeout(), 9);

        expect(reasonOf(await admit())).to.equal("go");
      });
    }

    for (const error of ["timeout", "dns", "refused", "reset", "tls", "unreachable", "protocol"] as const) {
      it(`counts ${error} that took a second, and none that was known at once`, async () => {
        await attempt({ ...timeout(999), error }, 20);
        expect(reasonOf(await admit())).to.equal("go");

        await attempt({ ...timeout(1_000), error }, 10);
        expect(reasonOf(await admit())).to.equal("silent");
      });
    }

    it("counts what took half the timeout, when that is less than a second", async () => {
      create({ timeoutMs: 500 });
      await attempt(timeout(249), 10);
      expect(reasonOf(await admit())).to.equal("go");

      await attempt(timeout(250), 10);
      expect(reasonOf(await admit())).to.equal("silent");
    });

    it("counts an answer whose body never ends as none", async () => {
      await attempt({ ...timeout(), statusCode: 200 }, 10);

      expect(reasonOf(await admit())).to.equal("silent");
    });

    it("is one for each user and URL: what hangs on a host that many share holds up nothing else", async () => {
      await attempt(timeout(), 10);

      expect(reasonOf(await admit("https://hooks.example.com/other"))).to.equal("go");
      const other = { id: 2, name: "", email: "", isAdmin: false };
      expect(reasonOf(await admit(url, { user: other }))).to.equal("go");
      expect(reasonOf(await admit(url, { subscriptionId: 2 }))).to.equal("silent");
    });

    it("makes the first attempt of a manual retry all the same, and heeds its answer", async () => {
      await attempt(timeout(), 10);
      expect(reasonOf(await admit(url, { isManual: true, attempt: 1 }))).to.equal("silent");

      const manual = await admit(url, { isManual: true });
      if (manual.kind === "go") manual.done(success());

      expect(reasonOf(await admit())).to.equal("go");
    });

    it("lets another attempt decide when the probe was not made", async () => {
      await attempt(timeout(), 10);
      nowMs += 4_000;
      await attempt(undefined);

      expect(reasonOf(await admit())).to.equal("go");
      expect(reasonOf(await admit())).to.equal("silent");
    });

    it("says when one opens and when it closes, with the host and nothing else of the URL", async () => {
      await attempt(timeout(), 10);
      nowMs += 4_000;
      await attempt(timeout());
      nowMs += 8_000;
      await attempt(success());
      await attempt(success());

      expect(lines.map(({ event, receiver, error }) => [event, receiver, error])).to.deep.equal([
        ["breaker.opened", "hooks.example.com", "timeout"],
        ["breaker.closed", "hooks.example.com", undefined],
      ]);
      expect(JSON.stringify(lines)).to.not.contain("s3cret");
    });

    it("can be done without", async () => {
      create({ hasBreakers: false });

      await attempt(timeout(), 30);

      expect(reasonOf(await admit())).to.equal("go");
      expect(admission.breakerCounts()).to.deep.equal({ open: 0, halfOpen: 0 });
    });
  });
});
