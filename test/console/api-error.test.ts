import { expect } from "chai";
import { ApiError, faultsOf, mayBeDone, otherFaultsOf } from "../../src/console/api/api-error.ts";

describe("mayBeDone", () => {
  for (const [status, expected] of [
    [0, true],
    [400, false],
    [401, true],
    [403, false],
    [408, true],
    [409, true],
    [422, false],
    [429, true],
    [500, true],
    [504, true],
  ] as const)
    it(`is ${expected} for the status ${status}`, () => {
      expect(mayBeDone(new ApiError({ message: "", status }))).to.equal(expected);
    });
});

describe("faultsOf and otherFaultsOf", () => {
  const fields = {
    tag: ["The tag is short."],
    "tags.1": ["The tag is long."],
    "tags.1.x": ["It is no text."],
  };
  const error = new ApiError({ message: "", status: 422, fields });

  it("return the messages of a field", () => {
    expect(faultsOf(error, "tag")).to.deep.equal(["The tag is short."]);
  });

  it("return those within a field with their places", () => {
    expect(faultsOf(error, "tags")).to.deep.equal(["1: The tag is long.", "1.x: It is no text."]);
  });

  it("return messages that name their places unchanged", () => {
    const errors = { "tags.0": ["The tags.0 field must be a string."] };
    const refusal = new ApiError({ message: "", status: 422, fields: errors });

    expect(faultsOf(refusal, "tags")).to.deep.equal(errors["tags.0"]);
  });

  it("return those of no field with its name", () => {
    expect(otherFaultsOf(error, ["tags"])).to.deep.equal(["tag: The tag is short."]);
  });

  it("return none of another error", () => {
    expect([...faultsOf(new Error("x"), "tag"), ...otherFaultsOf(new Error("x"), [])]).to.deep.equal([]);
  });
});
