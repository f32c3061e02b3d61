import { expect } from "chai";
import { ApiError } from "../../src/console/api/api-error.ts";
import { every } from "../../src/console/api/every.ts";

function waitAfter(error: Error | null): number | false {
  return every(15_000)({ state: { error } });
}

describe("every", () => {
  it("retries every 3 s while the service is down, as the page shows", () => {
    expect(waitAfter(new ApiError({ status: 0, message: "" }))).to.equal(3_000);
  });

  it("polls at its own interval otherwise", () => {
    expect([waitAfter(null), waitAfter(new ApiError({ status: 404, message: "" }))]).to.deep.equal([
      15_000, 15_000,
    ]);
  });
});
