import { expect } from "chai";
import { signatures } from "../../src/validation/syntax.ts";
import { compileRules, validate, type Lookup } from "../../src/validation/validate.ts";
import { absent, type Case } from "./case.ts";
import { choiceCases } from "./choice-cases.ts";
import { dateCases } from "./date-cases.ts";
import { formatCases } from "./format-cases.ts";
import { presenceCases } from "./presence-cases.ts";
import { sizeCases } from "./size-cases.ts";
import { textCases } from "./text-cases.ts";
import { typeCases } from "./type-cases.ts";

const lookup: Lookup = {
  exists: ({ target, column, value }) =>
    Promise.resolve(target === "orders" && column === "reference" && value === "A-1"),
};
const now = new Date("2026-03-28T14:30:00Z");

const table: readonly Case[] = [
  ...presenceCases,
  ...typeCases,
  ...sizeCases,
  ...formatCases,
  ...dateCases,
  ...choiceCases,
  ...textCases,
];

const show = (value: unknown): string => {
  const text = typeof value === "symbol" ? "nothing" : (JSON.stringify(value) ?? "");
  return text.length > 60 ? `${text.slice(0, 60)}...` : text;
};

async function messagesFor({ rules, beside = {} }: Case, value: unknown): Promise<readonly string[]> {
  const body = value === absent ? beside : { ...beside, item_code: value };
  const result = await validate(compileRules({ item_code: rules }), body, { lookup, now });
  return result.kind === "valid" ? [] : (result.errors["item_code"] ?? []);
}

/** Names of the rules with such values in the table. */
const tried = (which: "holds" | "breaks"): Set<string> =>
  new Set(
    table
      .filter((one) => one[which].length > 0)
      .flatMap(({ rules }) => (typeof rules === "string" ? rules.split("|") : rules))
      .map((rule) => (typeof rule === "string" ? rule.replace(/:.*/, "") : (Object.keys(rule)[0] ?? ""))),
  );

describe("the table of rules", () => {
  for (const one of table) {
    const name = `${typeof one.rules === "string" ? one.rules : JSON.stringify(one.rules)} beside ${JSON.stringify(one.beside ?? {})}`;

    for (const value of one.holds) {
      it(`${name} takes ${show(value)}`, async () => {
        expect(await messagesFor(one, value)).to.deep.equal([]);
      });
    }
    for (const value of one.breaks) {
      it(`${name} refuses ${show(value)}`, async () => {
        expect(await messagesFor(one, value)).to.include(one.message);
      });
    }
  }

  it("tries an invalid and a valid value of every rule with a message", () => {
    const modifiers = /^(bail|nullable|sometimes|exclude.*)$/;
    const wanted = Object.keys(signatures).filter((name) => !modifiers.test(name));

    expect(wanted.filter((name) => !tried("holds").has(name))).to.deep.equal([]);
    expect(wanted.filter((name) => !tried("breaks").has(name))).to.deep.equal([]);
  });
});
