import { expect } from "chai";
import { createRelayPace } from "../../src/events/relay-pace.ts";

/** Reads single events, `apartMs` apart, and returns the wait after the last. */
function waitAfter(events: number, apartMs: number): { readonly wait: (laterMs: number) => number } {
  let at = 0;
  const pace = createRelayPace({ now: () => at });
  for (let event = 0; event < events; event += 1) {
    at += apartMs;
    pace.note(1);
  }
  return {
    wait(laterMs) {
      at += laterMs;
      return pace.waitMs();
    },
  };
}

describe("createRelayPace", () => {
  it("reads at once below 200 events a second", () => {
    expect(waitAfter(500, 10).wait(0)).to.equal(0);
    expect(waitAfter(500, 5.5).wait(0)).to.equal(0);
  });

  it("reads once in 8 ms from there on", () => {
    const busy = waitAfter(500, 4);

    expect(busy.wait(0)).to.equal(8);
    expect(busy.wait(5)).to.equal(3);
    expect(busy.wait(4)).to.equal(0);
  });

  it("counts a read of many as that many", () => {
    let at = 0;
    const pace = createRelayPace({ now: () => at });
    pace.note(50);
    at += 1;

    expect(pace.waitMs()).to.equal(7);
  });

  it("reads at once again after 100 ms with few events", () => {
    expect(waitAfter(500, 2).wait(100)).to.equal(0);
  });
});
