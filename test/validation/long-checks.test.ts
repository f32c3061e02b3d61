import { expect } from "chai";
import type { RuleSpecs } from "../../src/validation/syntax.ts";
import { compileRules, validate, type Validation } from "../../src/validation/validate.ts";
import { turnsDuring } from "../support/turns.ts";

const lookup = { exists: (): Promise<boolean> => Promise.resolve(true) };

function check(specs: RuleSpecs, body: Readonly<Record<string, unknown>>): Promise<Validation> {
  return validate(compileRules(specs), body, { lookup });
}

const dates = { "list.*": "date_format:d.m.Y H:i|after:2026-01-01|regex:/^[0-9]/" };

function checkDates(length: number): Promise<Validation> {
  return check(dates, { list: Array<string>(length).fill("28.03.2026 14:30") });
}

describe("validate, with many items", () => {
  it("lets other requests run between the parts of a long check, and runs a short one at once", async () => {
    expect(await turnsDuring(() => checkDates(50))).to.equal(0);
    expect(await turnsDuring(() => checkDates(10_000))).to.be.above(2);
  });

  it("alternates the parts when many checks begin at once", async () => {
    expect(
      await turnsDuring(() => Promise.all(Array.from({ length: 100 }, () => checkDates(500)))),
    ).to.be.above(2);
  });

  it("runs short checks at once in a turn whose time a long one has used", async () => {
    const long = checkDates(10_000);
    const short = Array.from({ length: 100 }, () => 5);

    expect(await turnsDuring(() => Promise.all(short.map(checkDates)))).to.equal(0);
    await long;
  });

  it("lets other requests run while it trims the texts of 300,000 values", async () => {
    const names = Array.from({ length: 60_000 }, (_, index) => [`k${index}`, ""]);
    const body = { title: "x", doc: Array.from({ length: 300_000 }, () => []), ...Object.fromEntries(names) };

    expect(await turnsDuring(() => check({ title: "string", doc: "array" }, body))).to.be.above(2);
  });

  it("names the first 1000 of 60,000 faulty fields", async () => {
    const specs = Object.fromEntries("abcdef".split("").map((key) => [`items.*.${key}`, "required"]));
    const result = await check(specs, { items: Array.from({ length: 10_000 }, () => ({})) });

    expect(result.kind === "invalid" && Object.keys(result.errors)).to.deep.equal(
      Array.from({ length: 1000 }, (_, index) => `items.${index}.a`),
    );
  });
});
