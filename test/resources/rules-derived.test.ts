import { expect } from "chai";
import type { Definition, Field } from "../../src/mapping/definition.ts";
import { ruleFaults } from "../../src/validation/syntax.ts";
import { rulesOf } from "../../src/resources/rules.ts";
import { compileRules, validate } from "../../src/validation/validate.ts";
import { definitionOf, fieldOf } from "../validation/definition.ts";

const key = fieldOf({ name: "id", type: "Int", isKey: true, default: { kind: "autoincrement" } });

const withFields = (...fields: readonly Field[]): Definition => definitionOf({ fields: [key, ...fields] });

describe("rulesOf for a create", () => {
  const cases: readonly [name: string, field: Field, rules: Readonly<Record<string, unknown>>][] = [
    ["a text", fieldOf({ type: "String" }), { it: ["required", "string", { max: 65_536 }] }],
    [
      "a text with a length",
      fieldOf({ type: "String", length: 40 }),
      { it: ["required", "string", { max: 40 }] },
    ],
    [
      "an optional field",
      fieldOf({ type: "Int", isOptional: true }),
      { it: ["sometimes", "nullable", "integer"] },
    ],
    [
      "a default",
      fieldOf({ type: "Boolean", default: { kind: "literal", value: false } }),
      { it: ["sometimes", "boolean"] },
    ],
    [
      "a text that is empty by default",
      fieldOf({ type: "String", length: 9, default: { kind: "literal", value: "" } }),
      { it: ["sometimes", "nullable", "string", { max: 9 }] },
    ],
    ["BigInt", fieldOf({ type: "BigInt" }), { it: ["required", "integer"] }],
    ["Float", fieldOf({ type: "Float" }), { it: ["required", "numeric"] }],
    ["Decimal", fieldOf({ type: "Decimal" }), { it: ["required", "numeric"] }],
    [
      "Decimal with a scale",
      fieldOf({ type: "Decimal", precision: 12, scale: 2 }),
      { it: ["required", "bail", "numeric", { decimal: [0, 2] }] },
    ],
    ["DateTime", fieldOf({ type: "DateTime" }), { it: ["required", "date"] }],
    ["Uuid", fieldOf({ type: "Uuid" }), { it: ["required", "uuid"] }],
    ["Enum", fieldOf({ type: "Enum", values: ["a", "b|c"] }), { it: ["required", { in: ["a", "b|c"] }] }],
    ["Bytes", fieldOf({ type: "Bytes" }), { it: ["required", "string", "base64"] }],
    ["Json", fieldOf({ type: "Json" }), { it: ["present"] }],
    [
      "a list",
      fieldOf({ type: "String", isList: true }),
      { it: ["present", "array"], "it.*": ["required", "string", { max: 65_536 }] },
    ],
    [
      "a unique field",
      fieldOf({ type: "Int", isUnique: true }),
      { it: ["required", "integer", { unique: ["orders", "it"] }] },
    ],
    [
      "a reference",
      fieldOf({
        type: "Int",
        references: { resource: "customers", field: "id", as: "x", onDelete: "restrict" },
      }),
      { it: ["required", "integer", { exists: ["customers", "id"] }] },
    ],
    ["a default of now", fieldOf({ type: "DateTime", default: { kind: "now" } }), {}],
    ["a default of uuid", fieldOf({ type: "Uuid", default: { kind: "uuid" } }), {}],
    ["updatedAt", fieldOf({ type: "DateTime", isUpdatedAt: true }), {}],
  ];
  for (const [name, field, rules] of cases) {
    it(`derives ${JSON.stringify(rules)} from ${name}`, () => {
      const derived = rulesOf(withFields(field), "createRules");

      expect(derived).to.deep.equal(rules);
      expect(ruleFaults(derived)).to.deep.equal([]);
    });
  }

  it("accepts NULL in the arrays of an existing table", () => {
    const definition = { ...withFields(fieldOf({ type: "Int", isList: true })), isManaged: false };

    expect(rulesOf(definition, "createRules")).to.deep.equal({
      it: ["present", "array"],
      "it.*": ["nullable", "integer"],
    });
  });

  it("leaves the owner column to the service", () => {
    const definition = definitionOf({ fields: [key, fieldOf({ type: "Int" })], ownerColumn: "it" });

    expect(rulesOf(definition, "createRules")).to.deep.equal({});
  });

  it("requires a key that the client chooses", () => {
    const code = fieldOf({ name: "code", type: "String", isKey: true });

    expect(rulesOf(definitionOf({ fields: [code] }), "createRules")).to.deep.equal({
      code: ["required", "string", { max: 65_536 }],
    });
  });

  it("prefers the mapping file to derived rules, and the code module to both", () => {
    const inFile = definitionOf({ fields: [key], createRules: { a: "required" } });

    expect(rulesOf(inFile, "createRules")).to.deep.equal({ a: "required" });
    expect(
      rulesOf({ ...inFile, code: { createRules: () => ({ b: "string" }) } }, "createRules"),
    ).to.deep.equal({
      b: "string",
    });
  });

  it("accepts any JSON for a Json field", async () => {
    const compiled = compileRules(rulesOf(withFields(fieldOf({ type: "Json" })), "createRules"));

    for (const value of [null, 0, "", [], {}, { a: [1] }, false]) {
      const result = await validate(
        compiled,
        { it: value },
        { lookup: { exists: () => Promise.resolve(false) } },
      );
      expect(result.kind).to.equal("valid");
    }
  });
});

describe("rulesOf for an update", () => {
  it("derives the same with any field left out, and without the key", () => {
    const code = fieldOf({ name: "code", type: "String", isKey: true });
    const definition = definitionOf({
      fields: [
        code,
        fieldOf({ type: "Int" }),
        fieldOf({ name: "tags", type: "Json", isList: true, isOptional: true }),
      ],
    });

    expect(rulesOf(definition, "updateRules")).to.deep.equal({
      it: ["sometimes", "integer"],
      tags: ["sometimes", "nullable", "array"],
    });
  });

  it("prefers the mapping file to derived rules, and the code module to both", () => {
    const inFile = definitionOf({ fields: [key], updateRules: { a: "sometimes" } });

    expect(rulesOf(inFile, "updateRules")).to.deep.equal({ a: "sometimes" });
    expect(
      rulesOf({ ...inFile, code: { updateRules: () => ({ b: "string" }) } }, "updateRules"),
    ).to.deep.equal({
      b: "string",
    });
  });
});
