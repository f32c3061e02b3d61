import { expect } from "chai";
import { findPath, keysOf, listShapeOf, pathFault, type PathTable } from "../../src/querying/shown-paths.ts";
import { listShop, objectOf } from "../support/list-shop.ts";

const { shape } = listShop();

const behind = (table: PathTable, path: string): string | undefined => {
  const found = findPath(table, path);
  if (found === undefined) return undefined;
  const way = [...found.links.map(({ name }) => name), found.field.name].join(".");
  return found.jsonPath === undefined ? way : `${way} #>> {${found.jsonPath.join(",")}}`;
};

describe("listShapeOf", () => {
  for (const [path, filtered, sorted] of [
    ["id", "id", "id"],
    ["urgent", "is_urgent", "is_urgent"],
    ["customer.id", "customer.id", "customer.id"],
    ["customer.more.vip", "customer.vip", "customer.vip"],
    ["lines.sku", "lines.sku", undefined],
    ["lines.quantity", "lines.quantity", undefined],
    ["tags", "tags", undefined],
    ["meta.plan", "meta #>> {plan}", undefined],
    ["meta.a.0.b", "meta #>> {a,0,b}", undefined],
    ["is_urgent", undefined, undefined],
    ["hidden", undefined, undefined],
    ["customer_id", undefined, undefined],
    ["customer.secret", undefined, undefined],
    ["customer", undefined, undefined],
    ["lines", undefined, undefined],
    ["meta", undefined, undefined],
    ["meta.", undefined, undefined],
    ["meta.a..b", undefined, undefined],
    ["meta.a\0", undefined, undefined],
    ["logs", undefined, undefined],
    ["logs.0", undefined, undefined],
    ["blob", undefined, undefined],
    ["kind", undefined, undefined],
    ["tags.0", undefined, undefined],
    ["", undefined, undefined],
    ["__proto__", undefined, undefined],
    [`meta.${"a".repeat(2000)}`, undefined, undefined],
  ] as const) {
    it(`gives ${JSON.stringify(path).slice(0, 40)} the column ${filtered ?? "nothing"} in a filter, ${sorted ?? "nothing"} in a sort`, () => {
      expect([behind(shape.filterable, path), behind(shape.sortable, path)]).to.deep.equal([
        filtered,
        sorted,
      ]);
    });
  }

  it("shows every field under its own name without a transform, and no relation", () => {
    const { transform: _, ...plain } = listShop().orders;
    const { filterable } = listShapeOf(plain, listShop().definitions);

    expect(behind(filterable, "hidden")).to.equal("hidden");
    expect(behind(filterable, "is_urgent")).to.equal("is_urgent");
    expect(behind(filterable, "customer.name")).to.equal(undefined);
  });

  it("follows relations only as far as the base query includes them whole", () => {
    const paths = ["customer.name", "lines.sku"];
    const filterableWith = (include: Readonly<Record<string, unknown>> | undefined): readonly string[] => {
      const { filterable } = listShop({ baseQuery: include === undefined ? {} : { include } }).shape;
      return paths.filter((path) => findPath(filterable, path) !== undefined);
    };

    expect(filterableWith({ customer: true, lines: true })).to.deep.equal(paths);
    expect(filterableWith({ lines: { orderBy: { id: "asc" } } })).to.deep.equal(["lines.sku"]);
    expect(filterableWith({ customer: false })).to.deep.equal([]);
    expect(filterableWith({ lines: { where: { sku: "a" } } })).to.deep.equal([]);
    expect(filterableWith({ lines: { take: 3 } })).to.deep.equal([]);
    expect(filterableWith(undefined)).to.deep.equal([]);
  });

  it("uses the include that a base query in code returns when it runs", () => {
    const { orders, definitions } = listShop({ baseQuery: {} });

    const { filterable } = listShapeOf(orders, definitions, { customer: true });

    expect(behind(filterable, "customer.name")).to.equal("customer.name");
  });

  it("limits the shown fields to filterable and sortable", () => {
    const narrow = listShop({ filterable: ["status", "meta", "customer.name"], sortable: [] }).shape;

    expect(behind(narrow.filterable, "status")).to.equal("status");
    expect(behind(narrow.filterable, "meta.plan")).to.equal("meta #>> {plan}");
    expect(behind(narrow.filterable, "meta")).to.equal(undefined);
    expect(behind(narrow.filterable, "id")).to.equal(undefined);
    expect(behind(narrow.sortable, "id")).to.equal(undefined);
    expect(pathFault(narrow.filterable, "id", "filtered")).to.equal("The field id cannot be filtered.");
  });

  it("accepts a path within a Json field that filterable lists, and none beside or below it", () => {
    const { filterable } = listShop({ filterable: ["meta.plan"] }).shape;

    expect(
      ["meta.plan", "meta.plans", "meta.plan.a", "meta"].map((path) => behind(filterable, path)),
    ).to.deep.equal(["meta #>> {plan}", undefined, undefined, undefined]);
  });

  it("accepts the fields that are listed beside a transform in code, and none without a list", () => {
    const code = { transform: () => ({}) };
    const { filterable, sortable, places } = listShop({ code, filterable: ["hidden", "meta"] }).shape;

    expect(behind(filterable, "hidden")).to.equal("hidden");
    expect(behind(filterable, "meta.plan")).to.equal("meta #>> {plan}");
    expect([behind(filterable, "meta"), behind(filterable, "id"), behind(sortable, "id")]).to.deep.equal([
      undefined,
      undefined,
      undefined,
    ]);
    expect(pathFault(filterable, "blob", "filtered")).to.equal(
      "There is no field blob; expected one of hidden.",
    );
    expect(places).to.equal(undefined);
  });

  it("takes the first of two places with one path", () => {
    const transform = objectOf({ "a.b": "reference", a: { of: { b: "hidden" } } });

    expect(behind(listShop({ transform }).shape.filterable, "a.b")).to.equal("reference");
  });
});

describe("pathFault", () => {
  for (const [path, message] of [
    ["amuont", "There is no field amuont; did you mean amount?"],
    [
      "hidden",
      "There is no field hidden; expected one of id, reference, status, amount, weight, serial, urgent, due_at, token, tags, customer.id, customer.name, customer.more.vip, lines.id, lines.order_id, lines.sku, lines.quantity.",
    ],
    ["meta", "The field meta cannot be filtered: it is a whole Json value; expected a path in it."],
    ["kind", "The field kind cannot be filtered: it is a constant."],
    ["blob", "The field blob cannot be filtered: it is of type Bytes."],
    ["logs", "The field logs cannot be filtered: it is a list of Json."],
    ["customer", "The field customer cannot be filtered: it is an object."],
  ] as const) {
    it(`names the fault of ${path}`, () =>
      expect(pathFault(shape.filterable, path, "filtered")).to.equal(message));
  }

  it("gives the reason why a path cannot be sorted", () => {
    expect(pathFault(shape.sortable, "lines.sku", "sorted")).to.equal(
      "The field lines.sku cannot be sorted: it is that of several records.",
    );
  });

  it("cuts long names", () => {
    const { filterable } = listShop({ filterable: [] }).shape;

    expect(pathFault(filterable, "x".repeat(5000), "filtered")).to.equal(
      `There is no field ${"x".repeat(100)}….`,
    );
  });
});

describe("keysOf", () => {
  it("returns the keys of a place of the JSON, and of one in a Json value", () => {
    const places = shape.places ?? new Map();

    expect(keysOf(places, "customer.more")).to.deep.equal(["customer", "more"]);
    expect(keysOf(places, "meta.a.b")).to.deep.equal(["meta", "a", "b"]);
    expect(keysOf(places, "hidden")).to.equal(undefined);
  });
});
