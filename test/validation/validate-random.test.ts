import { expect } from "chai";
import { mostNamedFields } from "../../src/kit/errors.ts";
import type { LookupQuery } from "../../src/validation/existence.ts";
import type { RuleSpecs } from "../../src/validation/syntax.ts";
import { compileRules, validate, type Lookup, type Validation } from "../../src/validation/validate.ts";
import { createRandom, pick, upTo, type Random } from "../support/random.ts";
import { plainValidate } from "./plain-validate.ts";

const keys =
  "a b meta meta.a meta.list.*.a items items.* items.*.a items.*.b items.*.list items.*.list.* items.0.a items.*.* map.*.a map.*.list.*".split(
    " ",
  );
const rules =
  "required nullable sometimes bail string integer numeric array list boolean filled present missing prohibited min:2 max:3 max:0.5 between:1,2 size:1 gt:1 gt:a lt:items.*.b in:a,1,2 not_in:b distinct in_array:items.*.a same:items.*.b different:a,items.*.a required_if:items.*.a,a,1 required_unless:a,1 required_with:items.*.b,a required_without:items.*.b prohibits:a date after:items.*.b before:2026-03-01 date_format:Y-m-d regex:/^[a1]/ confirmed exclude exclude_if:items.*.a,a exclude_unless:a,1 exclude_with:items.*.b exclude_without:b unique:t,c exists:t,c exists:t".split(
    " ",
  );
const names = ["a", "b", "list", "items", "map", "meta", "0", "__proto__"];
const scalars = [null, "", " a ", "a", "b", "1", 1, 2, 0.5, true, "2026-03-28", "x".repeat(5)];

function randomRules(random: Random): RuleSpecs {
  const chosen = keys.filter(() => random() < 0.35);
  return Object.fromEntries(
    chosen.map((key) => [key, Array.from({ length: 1 + upTo(random, 3) }, () => pick(random, rules))]),
  );
}

function randomValue(random: Random, levels: number): unknown {
  const kind = random();
  if (levels === 0 || kind < 0.4) return pick(random, scalars);
  const many = upTo(random, 4);
  if (kind < 0.7) return Array.from({ length: many }, () => randomValue(random, levels - 1));
  return Object.fromEntries(
    Array.from({ length: many }, () => [pick(random, names), randomValue(random, levels - 1)]),
  );
}

function randomBody(random: Random): Readonly<Record<string, unknown>> {
  const present = ["a", "b", "items", "map", "meta", "a_confirmation"].filter(() => random() < 0.7);
  return Object.fromEntries(present.map((name) => [name, randomValue(random, 4)]));
}

/** Runs one of both. Returns the result with its order, and the queries. */
async function shownBy(run: (lookup: Lookup) => Promise<Validation>): Promise<string> {
  const asked: LookupQuery[] = [];
  const lookup: Lookup = {
    exists: (query) => {
      asked.push(query);
      return Promise.resolve(query.value === "a" || query.value === 1);
    },
  };
  return JSON.stringify({ result: await run(lookup), asked });
}

function fieldsOf(one: Validation): readonly [string, unknown][] {
  return one.kind === "invalid" ? Object.entries(one.errors) : [];
}

describe("validate, with random rules and bodies", () => {
  const now = new Date("2026-03-15T12:00:00Z");

  it("agrees with the plain code, also in the order of messages and look-ups", async () => {
    const random = createRandom(20_261_126);
    const kinds = new Set<string>();
    for (let run = 0; run < 3000; run++) {
      const specs = randomRules(random);
      const body = randomBody(random);
      const shown = await shownBy((lookup) => validate(compileRules(specs), body, { lookup, now }));
      const plain = await shownBy((lookup) => plainValidate(specs, body, { lookup, now }));

      expect(shown, JSON.stringify({ run, specs, body })).to.equal(plain);
      kinds.add(shown.slice(0, 25));
    }
    expect(kinds.size).to.equal(2);
  });

  it(`names the first ${mostNamedFields} fields that the plain code names`, async () => {
    const random = createRandom(1126);
    const lookup: Lookup = { exists: ({ value }) => Promise.resolve(value === "a") };
    for (let run = 0; run < 20; run++) {
      const item = (): unknown => pick(random, [{}, { a: "a" }, { a: "b" }, { a: 1, b: 2 }, { b: "x" }]);
      const body = { c: ["a", "b", "c"], items: Array.from({ length: 900 }, item) };
      const specs = {
        "c.*": "exists:t,c",
        "items.*.a": "required|string|in:a",
        "items.*.b": "required|integer",
      };
      const result = await validate(compileRules(specs), body, { lookup, now });
      const plain = await plainValidate(specs, body, { lookup, now });

      expect(fieldsOf(plain)).to.have.length.above(mostNamedFields);
      expect(fieldsOf(result).slice(0, mostNamedFields)).to.deep.equal(
        fieldsOf(plain).slice(0, mostNamedFields),
      );
      expect(fieldsOf(result)).to.have.length.below(mostNamedFields + 3);
    }
  });
});
