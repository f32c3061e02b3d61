import { expect } from "chai";
import { AppError } from "../../src/kit/errors.ts";
import { atOnce, inParts } from "../../src/kit/parts.ts";
import { dataOf } from "../../src/resources/data.ts";
import { field } from "../support/definitions.ts";
import { turnsDuring } from "../support/turns.ts";

const fields = [field("size", "Int"), field("sizes", "Int", { isList: true })];

describe("dataOf", () => {
  it("takes the validated values of fields, in the form of the column", () => {
    expect(atOnce(dataOf(fields, { size: "5", sizes: ["6", 7], other: 1 }))).to.deep.equal({
      size: 5,
      sizes: [6, 7],
    });
  });

  it("names every field and list item that the column cannot hold", () => {
    expect(() => atOnce(dataOf(fields, { size: 3e9, sizes: [1, -3e9] })))
      .to.throw(AppError)
      .with.property("errors")
      .that.deep.equals({
        size: ["The size field must be between -2147483648 and 2147483647."],
        "sizes.1": ["The sizes.1 field must be between -2147483648 and 2147483647."],
      });
  });

  it("names the first 1,000 items of a list that the column cannot hold", () => {
    expect(() => atOnce(dataOf(fields, { sizes: Array<number>(10_000).fill(3e9) })))
      .to.throw(AppError)
      .with.property("errors")
      .that.has.all.keys(Array.from({ length: 1000 }, (_, index) => `sizes.${index}`));
  });

  it("lets other requests run while it converts lists of 300,000 items, also within a Json value", async () => {
    const lists = Array.from({ length: 30 }, (_, index) =>
      field(`sizes${index}`, "Decimal", { isList: true }),
    );
    const sizes = Object.fromEntries(lists.map(({ name }) => [name, Array<string>(10_000).fill("5.25")]));
    const doc = Array.from({ length: 300_000 }, () => []);

    expect(await turnsDuring(() => inParts(1, dataOf(lists, sizes)))).to.be.above(2);
    expect(await turnsDuring(() => inParts(1, dataOf([field("doc", "Json")], { doc })))).to.be.above(0);
  });

  it("refuses a text as the whole key that no address can have, and accepts it elsewhere", () => {
    const [code, other] = [field("code", "String", { isKey: true }), field("other", "String")];
    for (const text of ["", ".", ".."]) {
      expect(() => atOnce(dataOf([code, other], { code: text, other: "x" }, { keys: [code] })))
        .to.throw(AppError)
        .with.property("errors")
        .that.deep.equals({
          code: ['The code field must not be empty, "." or "..": a record with such a key has no address.'],
        });
      const values = { code: "a.", other: text };
      expect(atOnce(dataOf([code, other], values, { keys: [code] }))).to.deep.equal(values);
      expect(atOnce(dataOf([code, other], { code: text }, { keys: [code, other] }))).to.deep.equal({
        code: text,
      });
    }
  });
});
