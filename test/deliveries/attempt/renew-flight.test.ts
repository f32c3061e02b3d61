import { expect } from "chai";
import { isOld, renewFlight } from "../../../src/deliveries/attempt/renew-flight.ts";
import type { Flight } from "../../../src/deliveries/flights.ts";
import { createMemoryLog } from "../../support/http.ts";

describe("renewFlight", () => {
  it("asks once for deliveries at the same time, and again for later ones", async () => {
    const { log, lines } = createMemoryLog();
    const answers = [true, false];
    const asked: unknown[] = [];
    const store = {
      async renewFlight(given: unknown): Promise<boolean> {
        asked.push(given);
        return answers.shift() ?? expect.fail("asked too often");
      },
    };
    const flight: Flight = { id: "7", unwritten: 2, beganAtMs: performance.now() - 6_000 };
    const options = { store, flightMs: 25_000, log };
    expect(isOld(flight)).to.equal(true);

    const beganAtMs = performance.now();
    expect(await Promise.all([renewFlight(options, flight), renewFlight(options, flight)])).to.deep.equal([
      true,
      true,
    ]);

    expect(asked).to.deep.equal([{ id: "7", flightMs: 25_000 }]);
    expect(isOld(flight)).to.equal(false);
    expect(flight.beganAtMs).to.be.within(beganAtMs, performance.now());
    expect(lines).to.deep.equal([]);

    flight.beganAtMs -= 6_000;
    expect(await renewFlight(options, flight)).to.equal(false);

    expect([asked.length, isOld(flight)]).to.deep.equal([2, true]);
    expect(lines).to.have.length(1);
    expect(lines[0]).to.include({ event: "delivery.late", flight: "7" });
  });
});
