import { expect } from "chai";
import { idAtEnd } from "../../src/console/pages/resources/path-id.ts";

describe("idAtEnd", () => {
  for (const id of [
    "7",
    "ada@example.com",
    "a/b,c",
    "100%",
    "x%2Fy",
    "A%2C1,2",
    "2026-03-28T14:30:00.123+00:00",
  ])
    it(`reads ${id} as it was written`, () => {
      expect(idAtEnd(`/console/resources/rooms/${encodeURIComponent(id)}`)).to.equal(id);
      expect(idAtEnd(`/console/resources/rooms/${encodeURIComponent(id)}/`)).to.equal(id);
    });

  it("returns an invalid encoding unchanged", () => {
    expect(idAtEnd("/resources/rooms/100%")).to.equal("100%");
  });
});
