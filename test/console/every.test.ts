import { expect } from "chai";
import { ApiError } from "../../src/console/api/api-error.ts";
import { every } from "../../src/console/api/every.ts";

function waitAfter(error: Error | null): number | false {
  return every(15_000)({ state: { error } });
}

describe("every", () => {
  it("asks again every 3 s while the service is away, as the page says", () => {
    expect(waitAfter(new ApiError({ status: 0, message: "" }))).to.equal(3_000);
  });

  it("asks again after its own time otherwise", () => {
    expect([waitAfter(null), waitAfter(new ApiError({ status: 404, message: "" }))]).to.deep.equal([
      15_000, 15_000,
    ]);
  });
});
