import { expect } from "chai";
import { counted } from "../../src/kit/counted.ts";

describe("counted", () => {
  it("names one by its singular, and all others by their plural", () => {
    expect([0, 1, 2].map((count) => counted(count, "event"))).to.deep.equal([
      "0 events",
      "1 event",
      "2 events",
    ]);
    expect([1, 1234].map((count) => counted(count, "delivery", "deliveries"))).to.deep.equal([
      "1 delivery",
      "1,234 deliveries",
    ]);
  });
});
