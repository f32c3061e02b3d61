import { expect } from "chai";
import {
  formFields,
  toText,
  toValue,
  type FormField,
} from "../../src/console/pages/resources/form-fields.ts";
import type { Schema } from "../../src/console/pages/resources/schema.ts";

const integerText = { type: "string", pattern: "^\\s*[+-]?(0|[1-9][0-9]*)\\s*$" };

/** Returns the field that a schema of a body makes. */
function fieldOf(schema: Schema): FormField {
  const [field] = formFields({ type: "object", properties: { it: schema } });
  if (field === undefined) throw new Error("There is no field.");
  return field;
}

const integer = fieldOf({ anyOf: [{ type: "integer" }, integerText] });
const toNumber = fieldOf({
  anyOf: [{ type: "integer" }, integerText, { type: "null" }],
  "x-resource": "rooms",
});
const toTextKey = fieldOf({ anyOf: [{ type: "string" }, { type: "null" }], "x-resource": "rooms" });
const zeroOrOne = fieldOf({
  anyOf: [
    { type: "integer", enum: [0, 1] },
    { type: "string", enum: ["0", "1"] },
  ],
});
const truth = fieldOf({ enum: [true, false, 0, 1, "0", "1"] });
const moment = fieldOf({ type: "string", format: "date-time" });
const day = fieldOf({ type: "string", format: "date" });
const list = fieldOf({ type: "array", items: { type: "string" } });
const ownForm = fieldOf({ type: "string", description: "Rules: date_format." });

describe("the fields of a record's form", () => {
  it("have the control of their schema", () => {
    const kinds = { integer, toNumber, toTextKey, zeroOrOne, truth, moment, day, ownForm };
    expect(Object.fromEntries(Object.entries(kinds).map(([name, { kind }]) => [name, kind]))).to.deep.equal({
      integer: "number",
      toNumber: "relation",
      toTextKey: "relation",
      zeroOrOne: "choice",
      truth: "boolean",
      moment: "moment",
      day: "date",
      ownForm: "line",
    });
    expect(zeroOrOne.choices).to.deep.equal(["0", "1"]);
    expect(fieldOf({ enum: [true, 1, "1", "yes", "on", "true"] }).kind).to.equal("boolean");
  });

  for (const [field, text, value] of [
    [integer, "12", 12],
    [integer, "2,5", "2,5"],
    [integer, "NaN", "NaN"],
    [integer, "Infinity", "Infinity"],
    [integer, "12345678901234567890", "12345678901234567890"],
    [toNumber, "1001", 1001],
    [toTextKey, "1001", "1001"],
    [toTextKey, "", null],
    [zeroOrOne, "0", 0],
    [truth, "true", true],
    [ownForm, "2026-03-28", "2026-03-28"],
  ] as const)
    it(`send ${JSON.stringify(value)} for "${text}" in a field of the kind ${field.kind}`, () => {
      expect(toValue(field, text)).to.equal(value);
    });

  for (const [value, text] of [
    [[], ""],
    [["a", "[b]", "c, d"], "a\n[b]\nc, d"],
    [["a\nb", "c"], '[\n  "a\\nb",\n  "c"\n]'],
    [["a\rb"], '[\n  "a\\rb"\n]'],
    [["a", null], '[\n  "a",\n  null\n]'],
    [[""], '[\n  ""\n]'],
    [["[1]"], '[\n  "[1]"\n]'],
  ] as const)
    it(`show the list ${JSON.stringify(value)} so that it is read back unchanged`, () => {
      expect(toText(list, value)).to.equal(text);
      expect(toValue(list, text)).to.deep.equal(value);
    });

  it("show a moment in a year that the own time zone has beyond 9999", () => {
    const before = process.env["TZ"];
    process.env["TZ"] = "Asia/Tokyo";
    try {
      expect(toText(moment, "9999-12-31T23:59:59.000+00:00")).to.equal("10000-01-01T08:59:59");
    } finally {
      if (before === undefined) delete process.env["TZ"];
      else process.env["TZ"] = before;
    }
  });

  it("show the values of records in the format of their controls", () => {
    expect([toText(zeroOrOne, 0), toText(truth, 0), toText(truth, true)]).to.deep.equal([
      "0",
      "false",
      "true",
    ]);
  });
});
