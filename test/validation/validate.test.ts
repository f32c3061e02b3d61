import { expect } from "chai";
import type { RuleSpecs } from "../../src/validation/syntax.ts";
import { compileRules, validate, type Lookup, type Validation } from "../../src/validation/validate.ts";
import type { LookupQuery } from "../../src/validation/existence.ts";
import { cpuMsOf } from "../support/cpu-time.ts";

const noLookup: Lookup = { exists: () => Promise.reject(new Error("asked the database")) };

const check = (
  specs: RuleSpecs,
  body: Readonly<Record<string, unknown>>,
  lookup: Lookup = noLookup,
): Promise<Validation> => validate(compileRules(specs), body, { lookup });

async function valuesOf(specs: RuleSpecs, body: Readonly<Record<string, unknown>>): Promise<unknown> {
  const result = await check(specs, body);
  return result.kind === "valid" ? result.values : result;
}

async function errorsOf(
  specs: RuleSpecs,
  body: Readonly<Record<string, unknown>>,
  lookup?: Lookup,
): Promise<unknown> {
  const result = await check(specs, body, lookup);
  return result.kind === "invalid" ? result.errors : result;
}

/** Answers yes for some values, and records its queries. */
function recording(answers: readonly unknown[]): Lookup & { readonly asked: LookupQuery[] } {
  const asked: LookupQuery[] = [];
  return {
    asked,
    exists: (query) => {
      asked.push(query);
      return Promise.resolve(answers.includes(query.value));
    },
  };
}

describe("validate", () => {
  it("gives back only keys that have rules, unconverted", async () => {
    expect(
      await valuesOf({ amount: "integer", notes: "string" }, { amount: "5", is_admin: true }),
    ).to.deep.equal({
      amount: "5",
    });
  });

  it("trims texts, the nested ones too, and turns blank ones into null", async () => {
    const specs = { name: "string", notes: "nullable|string", meta: "array" };

    expect(await valuesOf(specs, { name: " a ", notes: "  ", meta: { a: [" b ", ""] } })).to.deep.equal({
      name: "a",
      notes: null,
      meta: { a: ["b", null] },
    });
  });

  it("leaves a password unchanged", async () => {
    expect(await valuesOf({ password: "string" }, { password: " a " })).to.deep.equal({ password: " a " });
  });

  it("turns a blank password into null, so that it cannot avoid min", async () => {
    for (const password of ["", "   "]) {
      expect(await check({ password: "sometimes|string|min:8" }, { password })).to.deep.equal({
        kind: "invalid",
        errors: {
          password: [
            "The password field must be a string.",
            "The password field must be at least 8 characters.",
          ],
        },
      });
      expect(await valuesOf({ password: "nullable|string" }, { password })).to.deep.equal({ password: null });
    }
  });

  it("checks every field, and lists errors in the order of the rules", async () => {
    const result = await check({ b: "required", a: "string|min:3", c: "integer" }, { c: "x", a: 1 });

    expect(result).to.deep.equal({
      kind: "invalid",
      errors: {
        b: ["The b field is required."],
        a: ["The a field must be a string.", "The a field must be at least 3 characters."],
        c: ["The c field must be an integer."],
      },
    });
    expect(Object.keys(result.kind === "invalid" ? result.errors : {})).to.deep.equal(["b", "a", "c"]);
  });

  it("stops a field after a broken implicit rule", async () => {
    expect(await errorsOf({ a: "required|string|min:3" }, { a: null })).to.deep.equal({
      a: ["The a field is required."],
    });
  });

  it("stops a field after its first message with bail", async () => {
    expect(await errorsOf({ a: "bail|string|min:3" }, { a: 1 })).to.deep.equal({
      a: ["The a field must be a string."],
    });
  });

  it("skips a missing field with sometimes, but not one that is null", async () => {
    expect(await valuesOf({ a: "sometimes|required" }, {})).to.deep.equal({});
    expect(await errorsOf({ a: "sometimes|required" }, { a: null })).to.deep.equal({
      a: ["The a field is required."],
    });
  });

  it("shows names with spaces, nested ones as they are", async () => {
    const specs = { customer_name: "required", shippingAddress: "required", "address.zip_code": "required" };

    expect(await errorsOf(specs, {})).to.deep.equal({
      customer_name: ["The customer name field is required."],
      shippingAddress: ["The shipping address field is required."],
      "address.zip_code": ["The address.zip_code field is required."],
    });
  });

  it("keeps a blank in another field's value unchanged in a message", async () => {
    expect(await errorsOf({ a: "required_if:b,:attribute" }, { b: ":attribute" })).to.deep.equal({
      a: ["The a field is required when b is :attribute."],
    });
  });

  describe("nested keys", () => {
    const specs = { address: "array", "address.city": "required|string" };

    it("drops child keys without rules from an array with child rules", async () => {
      expect(await valuesOf(specs, { address: { city: "x", is_admin: true } })).to.deep.equal({
        address: { city: "x" },
      });
    });

    it("keeps a parent without the rule array whole", async () => {
      expect(
        await valuesOf({ address: "required", "address.city": "string" }, { address: { city: "x", zip: 1 } }),
      ).to.deep.equal({ address: { city: "x", zip: 1 } });
    });

    it("names them with dots", async () => {
      expect(await errorsOf(specs, { address: {} })).to.deep.equal({
        "address.city": ["The address.city field is required."],
      });
    });

    it("checks each item of *", async () => {
      expect(
        await errorsOf(
          { "people.*.name": "required", "tags.*": "string|distinct" },
          { people: [{ name: "a" }, {}, 5], tags: ["a", 1, "a"] },
        ),
      ).to.deep.equal({
        "people.1.name": ["The people.1.name field is required."],
        "people.2.name": ["The people.2.name field is required."],
        "tags.0": ["The tags.0 field has a duplicate value."],
        "tags.1": ["The tags.1 field must be a string."],
        "tags.2": ["The tags.2 field has a duplicate value."],
      });
    });

    it("takes * in another field's name for the same item", async () => {
      const items = [{ kind: "gift", note: "hi" }, { kind: "gift" }, { kind: "plain" }];

      expect(await errorsOf({ "items.*.note": "required_if:items.*.kind,gift" }, { items })).to.deep.equal({
        "items.1.note": ["The items.1.note field is required when items.1.kind is gift."],
      });
    });

    for (const [rule, item, end] of [
      ["required_with:items.*.a", { a: 1 }, "is required when items.1.a is present."],
      ["required_without_all:items.*.a,b", {}, "is required when none of items.1.a / b are present."],
      ["required_unless:items.*.a,x", { a: 1 }, "is required unless items.1.a is in x."],
      ["prohibits:items.*.a", { it: 1, a: 1 }, "prohibits items.1.a from being present."],
      ["same:items.*.a", { it: 1, a: 2 }, "must match items.1.a."],
      ["different:items.*.a", { it: 1, a: 1 }, "and items.1.a must be different."],
      ["numeric|gt:items.*.a", { it: 1 }, "must be greater than items.1.a."],
      ["after:items.*.a", { it: "2026-01-01", a: "2026-01-02" }, "must be a date after items.1.a."],
    ] as const)
      it(`names the same item in the message of ${rule}`, async () => {
        const errors = await errorsOf({ "items.*.it": rule }, { items: [{}, item], b: null });

        expect(errors)
          .to.have.property("items.1.it")
          .that.deep.equals([`The items.1.it field ${end}`]);
      });

    it("returns the validated part of each item, and an unchanged empty list", async () => {
      const list = { tags: "array", "tags.*.name": "string" };

      expect(await valuesOf(list, { tags: [{ name: "a", x: 1 }, { name: "b" }] })).to.deep.equal({
        tags: [{ name: "a" }, { name: "b" }],
      });
      expect(await valuesOf(list, { tags: [] })).to.deep.equal({ tags: [] });
    });
  });

  describe("exclusions", () => {
    const cases: readonly [rule: string, body: Readonly<Record<string, unknown>>, isExcluded: boolean][] = [
      ["exclude", {}, true],
      ["exclude_if:kind,a", { kind: "a" }, true],
      ["exclude_if:kind,a", { kind: "b" }, false],
      ["exclude_if:kind,null", {}, false],
      ["exclude_unless:kind,a", { kind: "a" }, false],
      ["exclude_unless:kind,a", { kind: "b" }, true],
      ["exclude_unless:kind,a", {}, true],
      ["exclude_with:other", { other: null }, true],
      ["exclude_with:other", {}, false],
      ["exclude_without:other", { other: "x" }, false],
      ["exclude_without:other", {}, true],
    ];
    for (const [rule, body, isExcluded] of cases) {
      it(`${rule} ${isExcluded ? "leaves out" : "keeps"} the field beside ${JSON.stringify(body)}`, async () => {
        expect(await valuesOf({ a: `${rule}|string` }, { ...body, a: "x" })).to.deep.equal(
          isExcluded ? {} : { a: "x" },
        );
      });
    }

    it("leaves out an excluded part of a field that is otherwise taken whole", async () => {
      const specs = {
        kind: "string",
        meta: "required",
        "meta.plan": "exclude_unless:kind,paid|in:a,b",
        "meta.tags": "required",
        "meta.tags.*.note": "exclude_if:kind,free|string",
      };
      const meta = { plan: "anything", seats: 3, tags: [{ note: 5, of: "x" }, "y"] };

      expect(await valuesOf(specs, { kind: "free", meta })).to.deep.equal({
        kind: "free",
        meta: { seats: 3, tags: [{ of: "x" }, "y"] },
      });
    });

    it("does not check the content of an excluded field", async () => {
      const specs = { a: "exclude_if:kind,x|array", "a.b": "required", kind: "string" };

      expect(await valuesOf(specs, { kind: "x", a: { c: 1 } })).to.deep.equal({ kind: "x" });
    });
  });

  describe("look-ups", () => {
    it("run only for fields without a fault so far", async () => {
      const lookup = recording([]);

      await check({ a: "string|unique:orders", b: "integer|exists:orders,id" }, { a: 1, b: 2 }, lookup);

      expect(lookup.asked).to.deep.equal([{ target: "orders", column: "id", value: 2, isReference: true }]);
    });

    it("run together", async () => {
      let open = 0;
      let most = 0;
      const lookup: Lookup = {
        exists: async () => {
          most = Math.max(most, ++open);
          await new Promise(setImmediate);
          open--;
          return true;
        },
      };

      await check({ a: "exists:x,id", b: "exists:x,id", c: "exists:y,id" }, { a: 1, b: 2, c: 3 }, lookup);

      expect(most).to.equal(3);
    });

    it("ask one question once", async () => {
      const lookup = recording(["a"]);

      await check({ "tags.*": "exists:tags,name" }, { tags: ["a", "a", "b"] }, lookup);

      expect(lookup.asked.map(({ value }) => value)).to.deep.equal(["a", "b"]);
    });

    it("tell 1 from '1'", async () => {
      const lookup = recording([1]);

      expect(await errorsOf({ "ids.*": "exists:x,id" }, { ids: [1, "1"] }, lookup)).to.deep.equal({
        "ids.1": ["The selected ids.1 is invalid."],
      });
    });

    it("use the field's own name as the column when none is given", async () => {
      const lookup = recording([]);

      await check({ email: "unique:users", "tags.*": "exists:tags" }, { email: "a", tags: ["b"] }, lookup);

      expect(lookup.asked.map(({ column }) => column)).to.deep.equal(["email", "tags"]);
    });

    it("exclude the updated record for unique only", async () => {
      const lookup = recording([]);
      const compiled = compileRules({ a: "unique:x", b: "exists:x" });

      await validate(compiled, { a: 1, b: 2 }, { lookup, ignoreKey: 7 });

      expect(lookup.asked).to.deep.equal([
        { target: "x", column: "a", value: 1, except: 7, isReference: false },
        { target: "x", column: "b", value: 2, isReference: true },
      ]);
    });

    it("report the first of two that fail", async () => {
      const lookup: Lookup = { exists: ({ target }) => Promise.resolve(target === "taken") };

      expect(await errorsOf({ a: "unique:taken|exists:none" }, { a: 1 }, lookup)).to.deep.equal({
        a: ["The a has already been taken."],
      });
    });

    it("pass a failure of the database on", async () => {
      const outcome = await check({ a: "unique:x" }, { a: 1 }).catch((error: unknown) => error);

      expect(outcome).to.be.an("error").with.property("message", "asked the database");
    });

    it("refuse more than 1000 values of one field without a query", async () => {
      const ids = Array.from({ length: 1001 }, (_, i) => i);

      expect(await errorsOf({ "ids.*": "exists:x,id" }, { ids })).to.deep.equal({
        ids: ["The ids field must not have more than 1000 items."],
      });
      expect(await errorsOf({ ids: "array|exists:x,id" }, { ids })).to.deep.equal({
        ids: ["The selected ids is invalid."],
      });
    });
  });

  describe("hostile bodies", () => {
    const hostile = JSON.parse(
      '{"__proto__": {"admin": true}, "constructor": {"prototype": {"x": 1}}}',
    ) as Record<string, unknown>;

    it("do not reach a prototype, in rules or in values", async () => {
      expect(await valuesOf({ admin: "missing", toString: "missing" }, hostile)).to.deep.equal({});
      expect(({} as Record<string, unknown>)["admin"]).to.equal(undefined);
      expect(({} as Record<string, unknown>)["x"]).to.equal(undefined);
    });

    it("return a nested __proto__ as an own key or not at all", async () => {
      const result = await check(
        { meta: "array", "list.*.a": "integer" },
        { meta: hostile, list: [hostile] },
      );

      const meta = result.kind === "valid" ? (result.values["meta"] as object) : {};
      expect(Object.getPrototypeOf(meta)).to.equal(Object.prototype);
      expect(Object.hasOwn(meta, "__proto__")).to.equal(true);
      expect("admin" in meta).to.equal(false);
    });

    it("do not find inherited properties of arrays by a nested key", async () => {
      expect(await valuesOf({ "a.length": "missing", "a.map": "missing" }, { a: [1, 2] })).to.deep.equal({});
    });

    it("of 100,000 levels are refused by field", async () => {
      let deep: unknown = 1;
      for (let i = 0; i < 100_000; i++) deep = i % 2 === 0 ? [deep] : { a: deep };

      expect(await errorsOf({ a: "required|array", b: "required" }, { a: deep, b: 1 })).to.deep.equal({
        a: ["The a field must not be nested more than 64 levels deep."],
      });
    });

    it("of 64 levels are taken", async () => {
      let deep: unknown = 1;
      for (let i = 0; i < 64; i++) deep = [deep];

      expect(await valuesOf({ a: "array" }, { a: deep })).to.deep.equal({ a: deep });
    });

    it("with more than 10,000 items under a * are refused at once", async () => {
      expect(
        await errorsOf({ "a.*.*": "string" }, { a: Array.from({ length: 200 }, () => Array(100).fill("x")) }),
      ).to.deep.equal({ a: ["The a field must not have more than 10000 items."] });
    });

    it("with 10,000 items are compared with each other in linear time", async () => {
      const a = Array.from({ length: 10_000 }, (_, i) => String(i));
      const cpuMs = await cpuMsOf(async () =>
        expect(await check({ "a.*": "distinct|in_array:a.*" }, { a })).to.have.property("kind", "valid"),
      );

      // A quadratic algorithm takes 10^8 steps, seconds.
      expect(cpuMs).to.be.lessThan(1500);
    });
  });
});
