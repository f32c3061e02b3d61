import { Decimal } from "@prisma/client/runtime/client";
import { expect } from "chai";
import type { Definition, Field, Row, TransformNode } from "../../src/mapping/definition.ts";
import { formatDateTime } from "../../src/kit/date-time.ts";
import { createTransform } from "../../src/querying/transform.ts";
import { definitionOf, fieldOf } from "../validation/definition.ts";

const id = fieldOf({ name: "id", type: "Int", isKey: true });
const customers = definitionOf({
  name: "customers",
  fields: [
    id,
    fieldOf({ name: "name", type: "String" }),
    fieldOf({ name: "limit", type: "Decimal", scale: 2 }),
  ],
});
const path = (text: string): TransformNode => ({ kind: "path", path: text.split(".") });
const object = (
  entries: Readonly<Record<string, TransformNode>>,
): TransformNode & { readonly kind: "object" } => ({
  kind: "object",
  entries: Object.entries(entries),
});

function orders(given: Partial<Definition>, ...fields: readonly Field[]): Definition {
  return definitionOf({
    fields: [id, ...fields],
    relations: [
      {
        name: "customer",
        kind: "one",
        resource: "customers",
        localField: "customer_id",
        foreignField: "id",
        relationName: "a",
      },
      {
        name: "others",
        kind: "many",
        resource: "customers",
        localField: "id",
        foreignField: "order_id",
        relationName: "b",
      },
    ],
    ...given,
  });
}

function show(definition: Definition, row: Row): unknown {
  const definitions = new Map([definition, customers].map((one) => [one.name, one]));
  return createTransform(definition, definitions)(row);
}

const coded = (transform: (row: Row) => unknown): Definition => orders({ code: { transform } });

describe("formatDateTime", () => {
  it("has milliseconds and an offset", () => {
    expect(formatDateTime(new Date("2026-03-28T14:30:00.1Z"))).to.equal("2026-03-28T14:30:00.100+00:00");
  });
});

describe("createTransform", () => {
  const values: readonly [field: Partial<Field> & Pick<Field, "type">, value: unknown, shown: unknown][] = [
    [{ type: "Int" }, 5, 5],
    [{ type: "Int" }, null, null],
    [{ type: "Int" }, undefined, null],
    [{ type: "BigInt" }, 9_007_199_254_740_991n, 9_007_199_254_740_991],
    [{ type: "BigInt" }, 9_007_199_254_740_992n, "9007199254740992"],
    [{ type: "BigInt" }, -9_223_372_036_854_775_808n, "-9223372036854775808"],
    [{ type: "Float" }, 0.5, 0.5],
    [{ type: "Float" }, NaN, null],
    [{ type: "Float" }, -Infinity, null],
    [{ type: "Decimal", scale: 2 }, new Decimal("12.5"), "12.50"],
    [{ type: "Decimal", scale: 2 }, new Decimal("13.8649"), "13.8649"],
    [{ type: "Decimal", scale: 2 }, new Decimal("NaN"), "NaN"],
    [{ type: "Decimal", scale: 0 }, new Decimal("12"), "12"],
    [{ type: "Decimal", scale: 2 }, "1e3", "1000.00"],
    [{ type: "Decimal" }, new Decimal("1e-10"), "0.0000000001"],
    [{ type: "Decimal" }, new Decimal("12345678901234567890123.45"), "12345678901234567890123.45"],
    [{ type: "DateTime" }, new Date("2026-03-28T14:30:00.123Z"), "2026-03-28T14:30:00.123+00:00"],
    [{ type: "DateTime" }, new Date(NaN), null],
    [{ type: "DateTime" }, "-infinity", "-infinity"],
    [{ type: "Date" }, "infinity", "infinity"],
    [{ type: "Bytes" }, new Uint8Array([104, 105]), "aGk="],
    [{ type: "Bytes" }, new Uint8Array([0, 104, 105, 0]).subarray(1, 3), "aGk="],
    [{ type: "Json" }, { a: [1, null] }, { a: [1, null] }],
    [{ type: "Boolean" }, false, false],
    [{ type: "String" }, "", ""],
    [{ type: "BigInt", isList: true }, [1n, 9_007_199_254_740_993n], [1, "9007199254740993"]],
    [{ type: "DateTime", isList: true }, [], []],
  ];
  for (const [field, value, shown] of values) {
    it(`shows ${String(value)} of ${JSON.stringify(field)} as ${JSON.stringify(shown)}`, () => {
      expect(show(orders({}, fieldOf(field)), { id: 1, it: value })).to.deep.equal({ id: 1, it: shown });
    });
  }

  it("shows every field under its own name by default, but no relation", () => {
    const row = { id: 1, customer: { id: 2, name: "a", limit: null } };

    expect(show(orders({}), row)).to.deep.equal({ id: 1 });
  });

  it("follows the mapping: paths, constants and objects, in its order", () => {
    const transform = object({
      kind: { kind: "value", value: "order" },
      number: path("id"),
      customer: object({ name: path("customer.name"), limit: path("customer.limit") }),
    });
    const shown = show(orders({ transform }), {
      id: 1,
      customer: { id: 2, name: "a", limit: new Decimal(5) },
    });

    expect(JSON.stringify(shown)).to.equal(
      '{"kind":"order","number":1,"customer":{"name":"a","limit":"5.00"}}',
    );
  });

  it("returns null for a step through a missing relation", () => {
    const transform = object({ name: path("customer.name") });

    expect(show(orders({ transform }), { id: 1, customer: null })).to.deep.equal({ name: null });
    expect(show(orders({ transform }), { id: 1 })).to.deep.equal({ name: null });
  });

  it("returns a list for a step through many records, and all fields for a relation itself", () => {
    const transform = object({ limits: path("others.limit"), customer: path("customer") });
    const row = {
      others: [{ limit: new Decimal(1) }, { limit: null }],
      customer: { id: 2, name: "a", limit: new Decimal(2), secret: "x" },
    };

    expect(show(orders({ transform }), row)).to.deep.equal({
      limits: ["1.00", null],
      customer: { id: 2, name: "a", limit: "2.00" },
    });
  });

  it("names the resource when a path leads nowhere", () => {
    expect(() => show(orders({ transform: object({ a: path("customer.nothing") }) }), {})).to.throw(
      "transform of the resource customers: there is no field or relation nothing",
    );
  });

  describe("with a code module", () => {
    it("replaces the mapping with it and passes it the row", () => {
      expect(
        show(
          coded(({ id: number }) => ({ number })),
          { id: 7 },
        ),
      ).to.deep.equal({ number: 7 });
    });

    it("makes its result safe by the kind of its values", () => {
      const at = new Date("2026-03-28T14:30:00Z");
      const result = {
        at,
        big: 2n ** 60n,
        amount: new Decimal("1e-7"),
        bytes: Buffer.from("hi"),
        nan: NaN,
        gone: undefined,
        list: [at, undefined, () => 1],
        own: { toJSON: () => ({ at }) },
      };

      expect(
        show(
          coded(() => result),
          {},
        ),
      ).to.deep.equal({
        at: "2026-03-28T14:30:00.000+00:00",
        big: "1152921504606846976",
        amount: "0.0000001",
        bytes: "aGk=",
        nan: null,
        list: ["2026-03-28T14:30:00.000+00:00", null, null],
        own: { at: "2026-03-28T14:30:00.000+00:00" },
      });
    });

    for (const result of [undefined, null, "text", 5, [{ id: 1 }], new Date(0), () => ({})])
      it(`refuses ${typeof result} ${JSON.stringify(result)}, since a record is an object`, () => {
        expect(() =>
          show(
            coded(() => result),
            {},
          ),
        )
          .to.throw(Error, "transform of the resource orders failed")
          .with.property("cause")
          .that.has.property("message", "the result is not an object");
      });

    it("names the resource in the error, with the thrown error as the cause", () => {
      const thrown = new TypeError("no customer");
      const failing = coded(() => {
        throw thrown;
      });

      expect(() => show(failing, {}))
        .to.throw(Error, "transform of the resource orders failed")
        .with.property("cause", thrown);
    });

    it("refuses a circular result instead of overflowing the stack", () => {
      const circle: Record<string, unknown> = {};
      circle["self"] = circle;

      expect(() =>
        show(
          coded(() => circle),
          {},
        ),
      )
        .to.throw(Error, "transform of the resource orders failed")
        .with.property("cause")
        .that.has.property("message", "the result is nested more than 64 levels deep, or circular");
    });
  });
});
