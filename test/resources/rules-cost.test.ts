import { expect } from "chai";
import { atOnce } from "../../src/kit/parts.ts";
import { coerce } from "../../src/resources/coerce.ts";
import { fieldTypes } from "../../src/mapping/definition.ts";
import type { RuleSpec } from "../../src/validation/syntax.ts";
import { signatures } from "../../src/validation/syntax.ts";
import { compileRules, validate, type Validation } from "../../src/validation/validate.ts";
import { cpuMsOf } from "../support/cpu-time.ts";
import { fieldOf } from "../validation/definition.ts";

const lookup = { exists: (): Promise<boolean> => Promise.resolve(true) };

/** Limit for the rules on one value, in ms of CPU. With a quadratic pattern it is 90 s. */
const limitMs = 2000;

/** Arguments for the rules that need some. */
const argumentsOf: Readonly<Record<string, string>> = {
  multiple_of: "3",
  regex: "/^(?:\\d+\\.?\\d*)$/",
  not_regex: "/(a+)+$/",
  date_format: "Y-m-d",
  decimal: "0,2",
  email: "rfc",
  timezone: "",
};

/** Returns the rule as text, with the other field as its argument where it has a field, else 1. */
function ruleText(name: string): string {
  const { least, most } = signatures[name as keyof typeof signatures];
  const given = argumentsOf[name] ?? (least === 0 ? "" : Array.from({ length: least }, argumentAt).join(","));
  return given === "" || most === 0 ? name : `${name}:${given}`;

  function argumentAt(_: unknown, index: number): string {
    const takesField =
      /^(exclude|required_(if|unless|with)|prohibits|in_array|same|different|gt|lt|date_eq|after|before)/;
    return index === 0 && (takesField.test(name) || name === "exists" || name === "unique") ? "other" : "1";
  }
}

const length = 150_000;
const texts = [
  "1",
  "0",
  " ",
  "a",
  "é",
  "👍",
  ".",
  "-",
  "1.",
  "a.",
  "/a",
  "[",
  "%",
  ":",
  "\\",
  '"',
  "=",
  "\n",
  "2026-",
  "@",
].flatMap((unit) => ["", "!", "\n1"].map((end) => unit.repeat(length / unit.length) + end));
const wide = Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`k${i}`, 1]));
const deep: unknown = JSON.parse("[".repeat(40_000) + "]".repeat(40_000));

function timeOf(
  specs: Readonly<Record<string, RuleSpec>>,
  body: Readonly<Record<string, unknown>>,
): Promise<number> {
  const rules = compileRules(specs);
  return cpuMsOf(() => validate(rules, body, { lookup }));
}

describe("validate, with 150,000 characters for one value", () => {
  for (const name of Object.keys(signatures))
    it(`takes less than 2 s for ${name}, also beside numeric and array`, async () => {
      let slowest = 0;
      for (const text of texts)
        for (const among of ["", "numeric|", "array|"]) {
          const specs = { value: `${among}${ruleText(name)}`, other: "nullable" };
          slowest = Math.max(slowest, await timeOf(specs, { value: text, other: text }));
        }

      expect(slowest).to.be.below(limitMs);
    });
});

describe("validate, with 3,000 items beside one large value", () => {
  const largeValues = {
    "an object of 20,000 keys": wide,
    "a text of 500 KB": "x".repeat(500_000),
    "blanks of 500 KB": " ".repeat(500_000),
    "a list of 200,000": Array<number>(200_000).fill(1),
  };
  const names = Object.keys(signatures).filter((name) => ruleText(name).includes(":other"));
  for (const [what, other] of Object.entries(largeValues))
    it(`takes less than 0.6 s for each rule on ${what}`, async () => {
      const times: Record<string, number> = {};
      for (const name of names)
        for (const item of ["", { a: 1 }]) {
          const body = {
            items: Array.from({ length: name === "exists" || name === "unique" ? 300 : 3000 }, () => ({
              x: item,
            })),
          };
          // `password` is the only field that is not trimmed.
          const specs = { "items.*.x": ruleText(name).replace("other", "password"), password: "nullable" };
          times[name] = Math.max(times[name] ?? 0, await timeOf(specs, { ...body, password: other }));
        }

      expect(Object.entries(times).filter(([, time]) => time > 600)).to.deep.equal([]);
    });

  it("takes less than 2 s for 10,000 places beneath one long key, which is refused", async () => {
    const rules = compileRules({ "value.*.list.*": "string" });
    const body = { value: { ["k".repeat(400_000)]: { list: Array<number>(10_000).fill(1) } } };

    let result: Validation | undefined;
    const cpuMs = await cpuMsOf(async () => (result = await validate(rules, body, { lookup })));

    expect(cpuMs).to.be.below(limitMs);
    expect(result?.kind === "invalid" && result.errors).to.deep.equal({
      value: ["The value field must not have keys of more than 255 characters."],
    });
  });

  it("takes less than a second for 10,000 time zones", async () => {
    const body = { zones: Array<string>(10_000).fill("Europe/Berlin") };
    expect(await timeOf({ "zones.*": "timezone" }, body)).to.be.below(1000);
  });

  it("takes less than 2 s for 40,000 levels and for 100,000 keys", async () => {
    const keys = Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`k${i}`, 1]));

    expect(await timeOf({ value: "array" }, { value: deep })).to.be.below(limitMs);
    expect(await timeOf({ value: "array" }, { ...keys, value: keys })).to.be.below(limitMs);
  });
});

describe("coerce, with 150,000 characters for one value", () => {
  for (const type of fieldTypes)
    it(`takes less than 2 s for ${type}`, async () => {
      const fields = [{ type }, { type, length: 1000 }, { type, precision: 1000, scale: 500 }].map(fieldOf);
      const values = [
        ...texts,
        "1e1000000000",
        "0e-1000000000",
        "1e-1000000000",
        `-${"9".repeat(1022)}`,
        wide,
        deep,
      ];

      const cpuMs = await cpuMsOf(() => {
        for (const field of fields) for (const value of values) atOnce(coerce(field, value));
      });

      expect(cpuMs).to.be.below(limitMs);
    });

  it("refuses lists of more than 10,000 items with one message", () => {
    const coerced = atOnce(coerce(fieldOf({ type: "Int", isList: true }), Array<null>(10_001).fill(null)));

    expect(coerced.kind === "refused" && coerced.errors).to.deep.equal({
      it: ["The it field must not have more than 10000 items."],
    });
  });
});
