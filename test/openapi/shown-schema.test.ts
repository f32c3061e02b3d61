import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { expect } from "chai";
import { shownSchema } from "../../src/openapi/value-schemas.ts";
import { field } from "../support/definitions.ts";

describe("shownSchema", () => {
  const ajv = new Ajv2020();
  (addFormats as unknown as (to: Ajv2020) => void)(ajv);

  for (const [type, values] of [
    ["DateTime", ["infinity", "0044-03-15 00:00:00+00 BC", "12026-01-01T00:00:00.000+00:00"]],
    ["Date", ["-infinity", "0044-03-15 BC", "12026-01-01", "5874897-12-31"]],
  ] as const) {
    it(`accepts a ${type} of another program's table that is beyond ISO 8601, and none of the service's own`, () => {
      const [foreign, own] = [false, true].map((isManaged) =>
        ajv.compile(shownSchema(field("at", type), { isManaged })),
      );

      expect(values.filter((value) => foreign?.(value) !== true)).to.deep.equal([]);
      expect(values.filter((value) => own?.(value) !== false)).to.deep.equal([]);
      expect(foreign?.("12026")).to.equal(false);
    });
  }

  it("accepts null as the key of a view, whose row may have none", () => {
    const key = field("total", "Int", { isKey: true, isNullable: true });

    expect(ajv.validate(shownSchema(key, { isManaged: false }), null)).to.equal(true);
  });
});
