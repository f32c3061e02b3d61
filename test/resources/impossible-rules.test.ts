import { expect } from "chai";
import { fieldTypes, type Definition, type FieldType } from "../../src/mapping/definition.ts";
import { atOnce } from "../../src/kit/parts.ts";
import { coerce } from "../../src/resources/coerce.ts";
import { impossible, impossibleForLists, impossibleRules } from "../../src/resources/impossible-rules.ts";
import { compileRules, validate } from "../../src/validation/validate.ts";
import { definition, field } from "../support/definitions.ts";

const things = definition({
  name: "things",
  fields: [
    field("name", "String"),
    field("amount", "Decimal"),
    field("tags", "Uuid", { isList: true }),
    field("more", "Json"),
  ],
});

const remarksOn = (changes: Partial<Definition>): readonly string[] =>
  impossibleRules({
    ...things,
    createRules: {},
    updateRules: {},
    remark: (path, message) => `${path.join(".")}: ${message}`,
    ...changes,
  });

function updateRules(): never {
  throw new Error("no");
}

describe("impossibleRules", () => {
  it("names a rule that no value of the field's type passes, of create and of update", () => {
    const rules = { name: "required|email", amount: "required|email", more: "array" };

    expect(remarksOn({ createRules: rules, updateRules: { amount: [{ uuid: [4] }] } })).to.deep.equal([
      "createRules.amount: no Decimal passes the rule email, so that no request can set it",
      "updateRules.amount: no Decimal passes the rule uuid, so that no request can set it",
    ]);
  });

  it("tells a list from its items", () => {
    expect(remarksOn({ createRules: { tags: "uuid", "tags.*": "array" } })).to.deep.equal([
      "createRules.tags: no list passes the rule uuid, so that no request can set it",
      "createRules.tags.*: no Uuid passes the rule array, so that no request can set it",
    ]);
    expect(remarksOn({ createRules: { tags: "array", "tags.*": "uuid" } })).to.deep.equal([]);
  });

  it("names a rule that compares with a missing field", () => {
    const fields = [...things.fields, field("starts_at", "DateTime"), field("ends_at", "DateTime")];
    const rules = {
      ends_at: "date|after:start_at|before:2030-01-01|before:latest.day",
      "latest.day": "date",
      starts_at: "date|after:now|before:ends_at",
      amount: "numeric|gt:0|lt:more.most",
      name: [{ in_array: "tagz.*" }],
    };

    expect(remarksOn({ fields, createRules: rules })).to.deep.equal([
      'createRules.ends_at: the rule after compares with start_at, which is no field; did you mean "starts_at"?',
      'createRules.name: the rule in_array compares with tagz.*, which is no field; did you mean "tags"?',
    ]);
  });

  it("names the rules of a code module at its key, and skips one that throws", () => {
    expect(remarksOn({ code: { createRules: () => ({ amount: "ip" }), updateRules } })).to.deep.equal([
      "module: createRules: amount: no Decimal passes the rule ip, so that no request can set it",
    ]);
  });

  it("ignores names of no field, and disabled operations", () => {
    expect(remarksOn({ createRules: { other: "email", "more.at": "email" } })).to.deep.equal([]);
    expect(remarksOn({ createRules: { amount: "email" }, supportsCreate: false })).to.deep.equal([]);
  });

  it("finds nothing in derived rules", () => {
    const fields = fieldTypes.flatMap((type) => [
      field(type, type, type === "Enum" ? { values: ["a"] } : {}),
      field(`${type}s`, type, { isList: true, ...(type === "Enum" && { values: ["a"] }) }),
    ]);

    expect(impossibleRules(definition({ name: "all", fields }))).to.deep.equal([]);
  });

  // At least one value that each type accepts and each rule of the tables passes.
  const values: readonly unknown[] = [
    0,
    1,
    -5,
    2.5,
    true,
    false,
    "0",
    "1",
    "25",
    "1.5",
    "NaN",
    "Infinity",
    "12345678901234567890",
    "00000000000000000000000001",
    "2026-11-25",
    "2026-11-25T08:00:00Z",
    "08:00:00",
    "8:00",
    "P1D",
    "00000000-0000-4000-8000-000000000000",
    "a@example.com",
    "http://a.example/",
    "10.0.0.1",
    "::1",
    "00:00:00:00:00:00",
    "0000.0000.0000",
    "#000",
    "#000000",
    "UTC",
    "Europe/Berlin",
    "AAAA",
    "a",
    [],
    ["a"],
    [1],
    ["a@example.com"],
    {},
    { a: 1 },
  ];

  async function passing(rule: string, type: FieldType, isList: boolean): Promise<readonly unknown[]> {
    const held = field("a", type, { isList, ...(type === "Enum" && { values: ["a", "a@example.com"] }) });
    const rules = compileRules({ a: rule === "decimal" ? "decimal:0,30" : rule });
    const lookup = { exists: () => Promise.resolve(true) };
    const passed: unknown[] = [];
    for (const value of values) {
      const { kind } = await validate(rules, { a: value }, { lookup });
      if (kind === "valid" && atOnce(coerce(held, value)).kind === "ok") passed.push(value);
    }
    return passed;
  }

  for (const type of fieldTypes)
    it(`is correct for ${type}: nothing that the field accepts passes a named rule`, async () => {
      for (const rule of impossible[type]) expect(await passing(rule, type, false), rule).to.deep.equal([]);
      for (const rule of impossibleForLists)
        expect(await passing(rule, type, true), `${rule} of a list`).to.deep.equal([]);
    });

  it("names no rule that some value passes", async () => {
    for (const [rule, type] of [
      ["ulid", "Decimal"],
      ["boolean", "Int"],
      ["integer", "Boolean"],
      ["email", "Enum"],
      ["array", "Json"],
    ] as const) {
      expect(await passing(rule, type, false), `${rule} of ${type}`).not.to.deep.equal([]);
      expect(impossible[type]).not.to.include(rule);
    }
  });
});
