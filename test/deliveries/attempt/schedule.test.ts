import { expect } from "chai";
import { longestPostponementMs } from "../../../src/deliveries/attempt/schedule.ts";

const hourMs = 3_600_000;
const plan = [
  5_000, 300_000, 1_800_000, 7_200_000, 18_000_000, 36_000_000, 50_400_000, 72_000_000, 86_400_000,
];

describe("longestPostponementMs", () => {
  for (const { attempt, maxAttempts, backoffMs, hours, what } of [
    { attempt: 0, maxAttempts: 10, backoffMs: plan, hours: 123.58, what: "a whole plan and two days" },
    {
      attempt: 1,
      maxAttempts: 10,
      backoffMs: plan,
      hours: 123.58,
      what: "what is left after the first POST",
    },
    { attempt: 8, maxAttempts: 10, backoffMs: plan, hours: 92, what: "the last two waits and two days" },
    { attempt: 9, maxAttempts: 10, backoffMs: plan, hours: 72, what: "the last wait and two days" },
    { attempt: 0, maxAttempts: 1, backoffMs: plan, hours: 48, what: "two days when there is one attempt" },
    { attempt: 0, maxAttempts: 4, backoffMs: [hourMs], hours: 51, what: "a last wait that repeats" },
    { attempt: 0, maxAttempts: 4, backoffMs: [], hours: 48, what: "no waits" },
    { attempt: 12, maxAttempts: 10, backoffMs: plan, hours: 48, what: "more attempts made than planned" },
  ]) {
    it(`is ${hours} h for ${what}`, () => {
      const longestMs = longestPostponementMs({ attempt, maxAttempts, backoffMs });

      expect(longestMs / hourMs).to.be.closeTo(hours, 0.01);
    });
  }
});
