import { expect } from "chai";
import { decide, longestWaitMs } from "../../../src/deliveries/attempt/decide.ts";
import type { AttemptResult } from "../../../src/deliveries/delivery.ts";

const dayMs = 24 * 60 * 60 * 1000;
const ended = { startedAt: new Date(0), durationMs: 1, isResponseTruncated: false };

function answered(statusCode: number, retryAfterSeconds?: number): AttemptResult {
  const asked = retryAfterSeconds === undefined ? {} : { retryAfterSeconds };
  const isDone = statusCode >= 200 && statusCode < 300;
  return {
    ...ended,
    ...asked,
    statusCode,
    ...(isDone ? {} : { error: "http", detail: `answered ${statusCode}` }),
  };
}
const refused: AttemptResult = { ...ended, error: "refused", detail: "no one there" };
const halfAnswered: AttemptResult = { ...ended, error: "timeout", detail: "too slow", statusCode: 200 };

const plan = { attempt: 1, maxAttempts: 4, backoffMs: [1000, 60_000], jitter: 0.2, random: () => 0.5 };

describe("decide", () => {
  for (const status of [200, 201, 202, 204, 299]) {
    it(`treats ${status} as delivered, on the last attempt too`, () => {
      expect(decide({ ...plan, result: answered(status) })).to.deep.equal({ kind: "delivered" });
      expect(decide({ ...plan, attempt: 4, result: answered(status) })).to.deep.equal({ kind: "delivered" });
    });
  }

  for (const result of [
    answered(302),
    answered(400),
    answered(404),
    answered(410),
    answered(500),
    refused,
    halfAnswered,
  ]) {
    it(`retries ${result.error} ${result.statusCode ?? "without a status"}`, () => {
      expect(decide({ ...plan, result })).to.deep.equal({ kind: "retry", delayMs: 1000 });
    });
  }

  const waits: readonly [attempt: number, random: number, delayMs: number][] = [
    [1, 0.5, 1000],
    [2, 0.5, 60_000],
    [3, 0.5, 60_000],
    [1, 0, 800],
    [1, 0.999999, 1200],
    [2, 0.25, 54_000],
  ];
  for (const [attempt, random, delayMs] of waits) {
    it(`waits ${delayMs} ms after attempt ${attempt} when the random number is ${random}`, () => {
      const step = decide({ ...plan, attempt, random: () => random, result: refused });

      expect(step).to.deep.equal({ kind: "retry", delayMs });
    });
  }

  it("retries at once without a backoff", () => {
    expect(decide({ ...plan, backoffMs: [], result: refused })).to.deep.equal({ kind: "retry", delayMs: 0 });
  });

  const asked: readonly [what: string, result: AttemptResult, random: number, delayMs: number][] = [
    ["stretches the wait to the Retry-After of a 429", answered(429, 30), 0, 30_000],
    ["stretches the wait to the Retry-After of a 503", answered(503, 30), 0, 30_000],
    ["spreads a Retry-After upwards by the jitter", answered(503, 30), 0.5, 33_000],
    ["keeps the planned wait of a 503 without a Retry-After", answered(503), 0, 800],
    ["never shortens the wait for a Retry-After", answered(503, 0), 0.5, 1000],
    ["waits at most a day for a Retry-After", answered(429, 10 * 86_400), 0.5, dayMs],
    ["waits at most a day for an endless Retry-After", answered(429, 9_999_999_999), 0.999, dayMs],
    ["ignores Retry-After on other statuses", answered(500, 30), 0.5, 1000],
  ];
  for (const [what, result, random, delayMs] of asked) {
    it(what, () => {
      expect(decide({ ...plan, random: () => random, result })).to.deep.equal({ kind: "retry", delayMs });
    });
  }

  it("lets a Retry-After reach a planned wait that is longer than a day, and no further", () => {
    const step = decide({
      ...plan,
      backoffMs: [2 * dayMs],
      random: () => 0,
      result: answered(503, 10 * 86_400),
    });

    expect(step).to.deep.equal({ kind: "retry", delayMs: 2 * dayMs });
  });

  it("fails after the last attempt, also when there is only one", () => {
    expect(decide({ ...plan, attempt: 4, result: refused })).to.deep.equal({ kind: "failed" });
    expect(decide({ ...plan, maxAttempts: 1, result: answered(503, 30) })).to.deep.equal({ kind: "failed" });
  });

  it("fails at once when the limit was lowered below the attempts made", () => {
    expect(decide({ ...plan, attempt: 9, result: refused }).kind).to.equal("failed");
  });
});

describe("longestWaitMs", () => {
  it("is that of a Retry-After, unless a planned wait with its jitter is longer", () => {
    expect(longestWaitMs([1000, 0.9 * dayMs], 0.1)).to.equal(dayMs);
    expect(longestWaitMs([2 * dayMs, 1000], 0.5)).to.equal(3 * dayMs);
    expect(longestWaitMs([], 0.5)).to.equal(dayMs);
  });
});
