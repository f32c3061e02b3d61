import { expect } from "chai";
import type { CatalogColumn, CatalogConstraint, CatalogType } from "../../../src/mapping/import/catalog.ts";
import { importColumns } from "../../../src/mapping/import/column.ts";

const types = new Map(
  ["text", "int4", "numeric", "citext", "varchar"].map((name, index) => [
    index,
    { oid: index, name, kind: "base", item: 0 } as CatalogType,
  ]),
);
const column = (name: string, typeOid: number): CatalogColumn =>
  ({
    name,
    typeOid,
    number: 1,
    modifier: -1,
    maySelect: true,
    mayInsert: true,
    mayUpdate: true,
    expression: null,
    identity: "",
  }) as CatalogColumn;
const check = (condition: string): CatalogConstraint =>
  ({ kind: "check", relation: 1, domain: 0, condition, isValidated: true }) as CatalogConstraint;

describe("importColumns", () => {
  it("gives the values of a column only to that column, not to one named like a domain", () => {
    const { columns } = importColumns({
      columns: [column("VALUE", 0), column("name", 0)],
      types,
      checks: [check(`("VALUE" = ANY (ARRAY['a'::text, 'b'::text]))`)],
      keyColumn: undefined,
    });

    expect(columns.map(({ typed }) => typed)).to.deep.equal([
      { type: "Enum", values: ["a", "b"] },
      { type: "String" },
    ]);
  });

  it("derives no values of which one is longer than the column", () => {
    const { columns } = importColumns({
      // The modifier of a varchar is its length and 4.
      columns: [8, 7].map((modifier) => ({ ...column("status", 4), modifier })),
      types,
      checks: [check("((status)::text = ANY (ARRAY['open'::text, 'new'::text]))")],
      keyColumn: undefined,
    });

    expect(columns.map(({ typed }) => typed)).to.deep.equal([
      { type: "Enum", values: ["open", "new"] },
      { type: "String", length: 3 },
    ]);
  });

  it("derives no values from those of a text that is compared as a number, or in any case", () => {
    const given = [
      check("((code)::numeric = ANY (ARRAY[(1)::numeric, (2)::numeric]))"),
      check("(tag = ANY (ARRAY['a'::citext, 'b'::citext]))"),
    ];
    const { columns, unread } = importColumns({
      columns: [column("code", 0), column("tag", 3), column("exact", 3)],
      types,
      checks: [...given, check("((exact)::text = ANY (ARRAY['a'::text, 'b'::text]))")],
      keyColumn: undefined,
    });

    expect(columns.map(({ typed }) => typed.type)).to.deep.equal(["String", "String", "Enum"]);
    expect(unread).to.deep.equal(given.map(({ condition }) => condition));
  });

  it("names citext, so that events compare its texts as lists do", () => {
    const { columns } = importColumns({
      columns: [{ ...column("tag", 3), expression: "'a'::citext" }],
      types,
      checks: [],
      keyColumn: undefined,
    });

    expect(columns)
      .to.have.nested.property("[0].typed")
      .that.deep.equals({ type: "String", native: "citext" });
    expect(columns).to.have.nested.property("[0].default").that.deep.equals({ kind: "literal", value: "a" });
  });

  it("leaves out a column that is generated and not stored, which triggers cannot see", () => {
    const { columns, leftOut } = importColumns({
      columns: [{ ...column("gross", 1), expression: "price + 19", isGenerated: true, isVirtual: true }],
      types,
      checks: [],
      keyColumn: undefined,
    });

    expect([columns, leftOut.map(({ reason, isNeeded }) => [reason.slice(0, 27), isNeeded])]).to.deep.equal([
      [],
      [["it is generated and not sto", false]],
    ]);
  });

  it("needs a value for a column that it leaves out where a domain refuses NULL", () => {
    const domain = {
      oid: 9,
      kind: "domain",
      item: 0,
      domainBase: 8,
      isNotNullDomain: true,
      domainDefault: null,
    };
    const pair = { oid: 8, name: "pair", kind: "composite", item: 0 };
    const { leftOut } = importColumns({
      columns: [column("pair", 9)],
      types: new Map([domain, pair].map((type) => [type.oid, type as CatalogType])),
      checks: [],
      keyColumn: undefined,
    });

    expect(leftOut.map(({ isNeeded }) => isNeeded)).to.deep.equal([true]);
  });

  it("leaves a default that is none of the values of its column to the database", () => {
    const { columns } = importColumns({
      columns: ["a", "z"].map((value) => ({ ...column("name", 0), expression: `'${value}'::text` })),
      types,
      checks: [check("(name = ANY (ARRAY['a'::text, 'b'::text]))")],
      keyColumn: undefined,
    });

    expect(columns.map((one) => one.default)).to.deep.equal([
      { kind: "literal", value: "a" },
      { kind: "database" },
    ]);
  });

  it("names a column that a check of the files refused", () => {
    const { columns, leftOut } = importColumns({
      columns: [column("name", 0), column("code", 0)],
      types,
      checks: [],
      keyColumn: undefined,
      refusalOf: (name) => (name === "code" ? "expected a shorter name" : undefined),
    });

    expect(columns.map((one) => one.column.name)).to.deep.equal(["name"]);
    expect(leftOut.map((one) => [one.column.name, one.reason])).to.deep.equal([
      ["code", "expected a shorter name"],
    ]);
  });

  it("treats a cast to whole numbers as no limit, unless the column has whole numbers", () => {
    const given = [check("((price)::integer <= 10)"), check("((stars)::integer <= 5)")];
    const { columns, unread } = importColumns({
      columns: [column("stars", 1), column("price", 2)],
      types,
      checks: given,
      keyColumn: undefined,
    });

    expect(columns.map(({ checks }) => checks.length)).to.deep.equal([1, 0]);
    expect(unread).to.deep.equal(["((price)::integer <= 10)"]);
  });
});
