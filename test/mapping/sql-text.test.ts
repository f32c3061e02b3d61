import { expect } from "chai";
import { splitAt } from "../../src/mapping/sql-text.ts";

describe("splitAt", () => {
  it("ignores separators in names, texts and brackets", () => {
    expect(splitAt(`a(1, 2), "b,c", 'd,''e', E'f\\',g', h[1,2]`, ",")).to.deep.equal([
      "a(1, 2)",
      '"b,c"',
      "'d,''e'",
      "E'f\\',g'",
      "h[1,2]",
    ]);
    expect(splitAt(`SELECT ';'; SELECT ";"`, ";")).to.deep.equal(["SELECT ';'", 'SELECT ";"']);
  });
});
