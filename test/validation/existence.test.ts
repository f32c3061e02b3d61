import { expect } from "chai";
import { compileRules, validate } from "../../src/validation/validate.ts";

describe("createAsker", () => {
  it("asks at most 1000 queries for a field, with a list counted by its values", async () => {
    const asked: unknown[] = [];
    const exists = ({ value }: { readonly value: unknown }): Promise<boolean> => {
      asked.push(value);
      return Promise.resolve(true);
    };
    const ids = Array.from({ length: 4 }, (_, list) =>
      Array.from({ length: 400 }, (__, index) => list * 400 + index),
    );

    const result = await validate(compileRules({ "ids.*": "exists:x,id" }), { ids }, { lookup: { exists } });

    expect(asked).to.have.length(800);
    expect(result.kind === "invalid" && result.errors).to.deep.equal({
      "ids.2": ["The selected ids.2 is invalid."],
      "ids.3": ["The selected ids.3 is invalid."],
    });
  });
});
