import { DbNull, JsonNull } from "@prisma/client/runtime/client";
import { expect } from "chai";
import { atOnce } from "../../src/kit/parts.ts";
import { coerce, parseKey } from "../../src/resources/coerce.ts";
import type { Field } from "../../src/mapping/definition.ts";
import { fieldOf } from "../validation/definition.ts";

type Given = Partial<Field> & Pick<Field, "type">;

/** Returns nested arrays of `levels` levels. */
function nested(levels: number): unknown {
  let value: unknown = 1;
  for (let i = 0; i < levels; i++) value = [value];
  return value;
}

const notInterval = "The it field must be a duration of ISO 8601, such as P1DT12H.";

describe("coerce", () => {
  const taken: readonly [field: Given, value: unknown, coerced: unknown][] = [
    [{ type: "Int" }, 5, 5],
    [{ type: "String", default: { kind: "literal", value: "" } }, null, ""],
    [{ type: "String", default: { kind: "literal", value: "" }, isOptional: true }, null, null],
    [{ type: "Int" }, "+5", 5],
    [{ type: "Int" }, "-2147483648", -2_147_483_648],
    [{ type: "BigInt" }, 5, 5n],
    [{ type: "BigInt" }, "9223372036854775807", 9_223_372_036_854_775_807n],
    [{ type: "Float" }, "1e3", 1000],
    [{ type: "Float" }, -0.5, -0.5],
    [{ type: "Decimal" }, 0.1, "0.1"],
    [{ type: "Decimal" }, "1e3", "1000"],
    [{ type: "Decimal" }, 9007199254740.93, "9007199254740.93"],
    [{ type: "Decimal" }, 9007199254740991, "9007199254740991"],
    [{ type: "Decimal" }, "90071992547409.93", "90071992547409.93"],
    [{ type: "Decimal", precision: 5, scale: 2 }, "999.99", "999.99"],
    [{ type: "Decimal", precision: 5, scale: 2 }, "1.500", "1.5"],
    [{ type: "Decimal", precision: 2, scale: 2 }, 0, "0"],
    [{ type: "Decimal", precision: 3 }, "999", "999"],
    [
      { type: "Decimal" },
      "12345678901234567890.123456789012345678",
      "12345678901234567890.123456789012345678",
    ],
    [{ type: "String" }, "a", "a"],
    [{ type: "String", length: 2 }, "👍👍", "👍👍"],
    [{ type: "String" }, "👍".repeat(65_536), "👍".repeat(65_536)],
    [{ type: "String", length: 70_000 }, "x".repeat(70_000), "x".repeat(70_000)],
    [{ type: "Boolean" }, "1", true],
    [{ type: "Boolean" }, 0, false],
    [{ type: "DateTime" }, "2026-03-28", new Date("2026-03-28T00:00:00Z")],
    [{ type: "Interval" }, "P178956970Y7MT999999999H", "P178956970Y7MT999999999H"],
    [{ type: "Interval" }, "P-306783378W-1DT-0.5S", "P-306783378W-1DT-0.5S"],
    [{ type: "DateTime" }, "2026-03-28T14:30:00.123456+02:00", new Date("2026-03-28T12:30:00.123Z")],
    [{ type: "Uuid" }, "0B2C8F0E-7A55-4C11-9D3A-5F0E6A7B8C9D", "0b2c8f0e-7a55-4c11-9d3a-5f0e6a7b8c9d"],
    [{ type: "Enum", values: ["a", "1"] }, 1, "1"],
    [{ type: "Bytes" }, "aGk=", new Uint8Array([104, 105])],
    [{ type: "Json" }, { a: [1, null, "x"] }, { a: [1, null, "x"] }],
    [{ type: "Json" }, nested(64), nested(64)],
    [{ type: "Json" }, [9007199254740991, 1e21, 0.1], [9007199254740991, 1e21, 0.1]],
    [{ type: "Decimal" }, "9007199254740993", "9007199254740993"],
    [{ type: "Int", isOptional: true }, null, null],
    [{ type: "Int", isList: true }, ["1", 2], [1, 2]],
    [{ type: "Int", isList: true, isOptional: true }, null, []],
    [{ type: "Json", isList: true }, [1, { a: 2 }], [1, { a: 2 }]],
  ];
  for (const [field, value, coerced] of taken) {
    it(`turns ${JSON.stringify(value)?.slice(0, 60)} into ${field.type} ${String(coerced).slice(0, 40)} for ${JSON.stringify(field)}`, () => {
      expect(atOnce(coerce(fieldOf(field), value))).to.deep.equal({ kind: "ok", value: coerced });
    });
  }

  const refused: readonly [field: Given, value: unknown, message: string][] = [
    [{ type: "Int" }, null, "The it field is required."],
    [{ type: "Int" }, "a", "The it field must be an integer."],
    [{ type: "Int" }, 1.5, "The it field must be an integer."],
    [{ type: "Int" }, true, "The it field must be an integer."],
    [{ type: "Int" }, 2_147_483_648, "The it field must be between -2147483648 and 2147483647."],
    [{ type: "Int" }, "9".repeat(1024), "The it field must be between -2147483648 and 2147483647."],
    [{ type: "Int" }, "9".repeat(1025), "The it field must be an integer."],
    [{ type: "Decimal" }, "9".repeat(1025), "The it field must be a number."],
    [
      { type: "BigInt" },
      "9223372036854775808",
      "The it field must be between -9223372036854775808 and 9223372036854775807.",
    ],
    [
      { type: "BigInt" },
      2 ** 53,
      "The it field must be sent as a string, since a JSON number of that size loses digits.",
    ],
    [{ type: "Float" }, "x", "The it field must be a number."],
    [{ type: "Float" }, Infinity, "The it field must be a number."],
    [{ type: "Float" }, "1e400", "The it field must be a number that a 64-bit float can hold."],
    [{ type: "Decimal" }, "x", "The it field must be a number."],
    [
      { type: "Decimal", precision: 5, scale: 2 },
      1000,
      "The it field must not have more than 3 digits before the decimal point.",
    ],
    [
      { type: "Decimal", precision: 5, scale: 2 },
      "1.005",
      "The it field must not have more than 2 decimal places.",
    ],
    [{ type: "Decimal", precision: 3 }, "1.5", "The it field must not have more than 0 decimal places."],
    [
      { type: "Decimal" },
      "1e9000000",
      "The it field must not have more than 35 digits before the decimal point.",
    ],
    [
      { type: "Decimal", precision: 2, scale: 1 },
      1.25,
      "The it field must not have more than 1 decimal place.",
    ],
    [{ type: "Decimal" }, "1e-9000000", "The it field must not have more than 30 decimal places."],
    [
      { type: "Decimal" },
      "1e99999999999999999999",
      "The it field must not have more than 35 digits before the decimal point.",
    ],
    [{ type: "String" }, 5, "The it field must be a string."],
    [{ type: "String" }, {}, "The it field must be a string."],
    [{ type: "String" }, "a\0b", "The it field must not contain NUL characters."],
    [{ type: "String" }, "a\ud800", "The it field must not contain half a surrogate pair."],
    [{ type: "String", length: 2 }, "abc", "The it field must not be greater than 2 characters."],
    [{ type: "String" }, "é".repeat(65_537), "The it field must not be greater than 65536 characters."],
    [
      { type: "String", isList: true },
      ["x".repeat(65_537)],
      "The it.0 field must not be greater than 65536 characters.",
    ],
    [{ type: "Boolean" }, "yes", "The it field must be true or false."],
    [{ type: "DateTime" }, "2026-02-30", "The it field must be a valid date."],
    [{ type: "DateTime" }, "10000-01-01", "The it field must be a valid date."],
    [{ type: "Interval" }, "PT", notInterval],
    [{ type: "Interval" }, "1 day", notInterval],
    [{ type: "Interval" }, "P178956970Y8M", notInterval],
    [{ type: "Interval" }, "P306783379W-7D", notInterval],
    [{ type: "Interval" }, "P306783378W2D", notInterval],
    [{ type: "DateTime" }, 5, "The it field must be a valid date."],
    [{ type: "Uuid" }, "x", "The it field must be a valid UUID."],
    [{ type: "Enum", values: ["a"] }, "b", "The selected it is invalid."],
    [{ type: "Enum", values: ["a"] }, ["a"], "The selected it is invalid."],
    [{ type: "Bytes" }, "aGk", "The it field must be a valid Base64 string."],
    [{ type: "Json" }, nested(65), "The it field must not be nested more than 64 levels deep."],
    [{ type: "Json" }, { a: ["x\0"] }, "The it field must not contain NUL characters."],
    [{ type: "Json" }, { "a\0": 1 }, "The it field must not contain NUL characters."],
    [
      { type: "Json" },
      [{ __prismaRawParameters__: 1 }],
      'The it field must not contain the key "__prismaRawParameters__".',
    ],
    [
      { type: "Json" },
      JSON.parse('{"a":{"__proto__":1}}'),
      'The it field must not contain the key "__proto__".',
    ],
    [{ type: "Json" }, { a: { $type: "" } }, 'The it field must not contain an empty "$type".'],
    [
      { type: "Json" },
      { constructor: 1, a: [{ $type: "x" }] },
      'The it field must not contain a "$type" within an object that has the key "constructor".',
    ],
    [
      { type: "Json" },
      { n: [2 ** 53] },
      "The it field must not contain whole numbers beyond 9007199254740991, which lose digits; send them as strings.",
    ],
    [
      { type: "Decimal" },
      -(2 ** 63),
      "The it field must be sent as a string, since a JSON number of that size loses digits.",
    ],
    [
      { type: "Decimal", precision: 18, scale: 2 },
      Number("90071992547409.93"),
      "The it field must be sent as a string, since a JSON number of that size loses digits.",
    ],
    [
      { type: "Decimal", precision: 18, scale: 2 },
      0.1 + 0.2,
      "The it field must not have more than 2 decimal places.",
    ],
    [{ type: "Json" }, [Infinity], "The it field must not contain numbers that a 64-bit float cannot hold."],
    [{ type: "Int", isList: true }, 5, "The it field must be a list."],
    [{ type: "Int", isList: true }, { 0: 5 }, "The it field must be a list."],
    [{ type: "Int", isList: true }, [1, "x"], "The it.1 field must be an integer."],
    [{ type: "Int", isList: true }, [null], "The it.0 field is required."],
    [{ type: "Int", isList: true }, null, "The it field is required."],
    [{ type: "Int", name: "customer_id" }, "x", "The customer id field must be an integer."],
  ];
  for (const [field, value, message] of refused) {
    it(`refuses ${JSON.stringify(value)?.slice(0, 60)} for ${JSON.stringify(field)}`, () => {
      const coerced = atOnce(coerce(fieldOf(field), value));

      expect(coerced.kind === "refused" && Object.values(coerced.errors)).to.deep.equal([[message]]);
    });
  }

  it("names the items of a list that it refuses", () => {
    expect(atOnce(coerce(fieldOf({ type: "Int", isList: true }), [1, 2 ** 31, 3, null]))).to.deep.equal({
      kind: "refused",
      errors: {
        "it.1": ["The it.1 field must be between -2147483648 and 2147483647."],
        "it.3": ["The it.3 field is required."],
      },
    });
    expect(atOnce(coerce(fieldOf({ type: "Int" }), "x"))).to.have.nested.property("errors.it");
  });
});

describe("coerce of JSON", () => {
  // By identity: a deep comparison finds the two equal.
  it("turns null into JSON's null where the column has no NULL, else into NULL", () => {
    const required = atOnce(coerce(fieldOf({ type: "Json" }), null));
    const optional = atOnce(coerce(fieldOf({ type: "Json", isOptional: true }), null));

    expect(required.kind === "ok" && required.value === JsonNull).to.equal(true);
    expect(optional.kind === "ok" && optional.value === DbNull).to.equal(true);
  });

  it("refuses 100,000 levels without a stack overflow", () => {
    expect(atOnce(coerce(fieldOf({ type: "Json" }), nested(100_000)))).to.have.property("kind", "refused");
  });
});

describe("parseKey", () => {
  const keys: readonly [field: Given, text: string, key: unknown][] = [
    [{ type: "Int" }, "5", 5],
    [{ type: "Int" }, "-5", -5],
    [{ type: "Int" }, "2147483648", undefined],
    [{ type: "Int" }, "05", undefined],
    [{ type: "Int" }, "-0", undefined],
    [{ type: "Int" }, "+5", undefined],
    [{ type: "Int" }, "5.0", undefined],
    [{ type: "Int" }, "abc", undefined],
    [{ type: "Int" }, "", undefined],
    [{ type: "BigInt" }, "9223372036854775807", 9_223_372_036_854_775_807n],
    [{ type: "BigInt" }, "9223372036854775808", undefined],
    [{ type: "String" }, "a b", "a b"],
    [{ type: "String" }, "", undefined],
    [{ type: "String" }, "a\0", undefined],
    [{ type: "String", length: 3 }, "abcd", undefined],
    [{ type: "Uuid" }, "0B2C8F0E-7A55-4C11-9D3A-5F0E6A7B8C9D", "0b2c8f0e-7a55-4c11-9d3a-5f0e6a7b8c9d"],
    [{ type: "Uuid" }, "5", undefined],
    [{ type: "Decimal", scale: 2 }, "NaN", "NaN"],
    [{ type: "Decimal" }, "-Infinity", "-Infinity"],
    [{ type: "Decimal" }, "nan", undefined],
    [{ type: "Decimal" }, "1e3", undefined],
    [{ type: "Time" }, "24:00:00", "24:00:00"],
    [{ type: "Time" }, "24:00:01", undefined],
    [{ type: "Instant" }, "12026-01-02T03:04:05.100+00:00", "12026-01-02T03:04:05.100+00:00"],
    [{ type: "Instant" }, "12026-13-02T03:04:05.100+00:00", undefined],
  ];
  it("does not expand the digits of an exponent", () => {
    const before = process.cpuUsage();
    expect(parseKey(fieldOf({ type: "Decimal" }), "1e40000000")).to.equal(undefined);
    // Measured before: 3 s.
    expect(process.cpuUsage(before).user).to.be.below(700_000);
  });

  for (const [field, text, key] of keys) {
    it(`reads ${JSON.stringify(text)} as ${String(key)} for ${JSON.stringify(field)}`, () => {
      expect(parseKey(fieldOf(field), text)).to.equal(key);
    });
  }
});
