import { expect } from "chai";
import { idSchema } from "../../src/openapi/value-schemas.ts";
import { definition, field } from "../support/definitions.ts";

describe("idSchema", () => {
  it("has the id of a key of several fields as a text with commas", () => {
    const prices = definition({
      name: "prices",
      fields: [field("sku", "String", { isKey: true }), field("day", "Date", { isKey: true })],
    });
    const { pattern, ...rest } = idSchema(prices);

    expect(rest).to.deep.equal({
      type: "string",
      description: "The values of sku, day, each percent-encoded, with commas between them.",
      examples: ["a,2026-03-28"],
    });
    const fits = (id: string): boolean => new RegExp(String(pattern)).test(id);
    expect(["A%2C1,2026-03-28", "A", "A,2026-03-28,x", "A,"].map(fits)).to.deep.equal([
      true,
      false,
      false,
      false,
    ]);
    // A text may be blank where it is only a part of the key.
    expect(fits(",2026-03-28")).to.equal(true);
  });

  it("accepts a large id as answers have it, a text", () => {
    const events = definition({ name: "events", fields: [field("id", "BigInt", { isKey: true })] });

    expect(idSchema(events)).to.deep.equal({ type: ["integer", "string"], pattern: "^-?[0-9]+$" });
  });
});
