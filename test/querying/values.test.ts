import { expect } from "chai";
import { scalarParameter } from "../../src/querying/values.ts";

describe("scalarParameter", () => {
  it("reads a time without a zone as UTC, in any time zone of the process", () => {
    const before = process.env["TZ"];
    process.env["TZ"] = "America/New_York";
    try {
      const times = ["2026-03-28T14:30:00", "2026-03-08 02:30", "28 March 2026", "2026-03-28T14:30-04:00"];
      expect(times.map((time) => scalarParameter("DateTime", time))).to.deep.equal([
        "2026-03-28T14:30:00.000Z",
        "2026-03-08T02:30:00.000Z",
        "2026-03-28T00:00:00.000Z",
        "2026-03-28T18:30:00.000Z",
      ]);
    } finally {
      if (before === undefined) delete process.env["TZ"];
      else process.env["TZ"] = before;
    }
  });

  it("reads a whole number of 64 bits and bytes as mapping files have them", () => {
    expect(scalarParameter("BigInt", "9223372036854775807")).to.equal("9223372036854775807");
    expect(scalarParameter("Bytes", "QQ==")).to.deep.equal(Buffer.from("A"));
  });
});
