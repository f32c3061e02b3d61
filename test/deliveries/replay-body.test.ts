import { expect } from "chai";
import { AppError } from "../../src/kit/errors.ts";
import { readReplayBody } from "../../src/deliveries/replay/replay-body.ts";
import type { AskedReplay } from "../../src/deliveries/replay/replay.ts";

const read = (body: Readonly<Record<string, unknown>>): AskedReplay =>
  readReplayBody(body, {
    subscription: { resource: "orders", events: ["on_create"] },
    isResource: () => true,
    now: new Date("2026-03-28T14:30:00.123Z"),
  }).asked;

describe("readReplayBody", () => {
  it("keeps the microseconds of times, like those of events", () => {
    const since = "2026-03-28T14:30:00.122456Z";
    expect(read({ since, until: "2026-03-28T16:30:00.1224570+02:00" })).to.include({
      since,
      until: "2026-03-28T14:30:00.122457Z",
    });
    expect(read({ since: "2026-03-28" })).to.include({
      since: "2026-03-28T00:00:00.000000Z",
      until: "2026-03-28T14:30:00.123000Z",
    });
    expect(() => read({ since, until: "2026-03-28T14:30:00.122455Z" })).to.throw("a date before until");
  });

  it("names unknown fields together with other faults", () => {
    try {
      read({ status: ["x"], until: 5, x: 1 });
      expect.fail("took it");
    } catch (error) {
      expect(error).to.be.instanceOf(AppError);
      expect((error as AppError).errors).to.have.all.keys("since", "status", "until", "x");
    }
  });
});
