import { expect } from "chai";
import { Decimal } from "../../src/kit/prisma-values.ts";
import type { BaseQuery, Definition } from "../../src/mapping/definition.ts";
import { whereAll, baseQueryOf, listQuery } from "../../src/resources/query.ts";
import { definition, field } from "../support/definitions.ts";

const orders = (overrides: Partial<Definition> = {}): Definition =>
  definition({
    name: "orders",
    fields: [field("reference", "String"), field("notes", "String")],
    searchableColumns: ["reference", "notes"],
    baseQuery: { where: { is_live: true }, orderBy: [{ reference: "desc" }], include: { customer: true } },
    ...overrides,
  });

/** Changes the query as a query builder does. */
function changing(query: { -readonly [Key in keyof BaseQuery]: BaseQuery[Key] }, search: string): BaseQuery {
  Object.assign(query.where ?? {}, { reference: search });
  (query.orderBy as Record<string, unknown>[]).unshift({ notes: "asc" });
  Object.assign(query.include ?? {}, { customer: false });
  return query;
}

describe("listQuery", () => {
  it("reads the base query's records", () => {
    expect(listQuery(orders())).to.deep.equal({
      where: { is_live: true },
      orderBy: [{ reference: "desc" }, { id: "asc" }],
      include: { customer: true },
    });
  });

  it("reads everything without filters", () => {
    const plain = orders({ baseQuery: {} });

    expect(listQuery(plain, "")).to.deep.equal({
      where: {},
      orderBy: [{ id: "asc" }],
      include: undefined,
    });
  });

  it("keeps an order that already has the key", () => {
    const byKey = orders({ baseQuery: { orderBy: [{ id: "desc" }] } });

    expect(listQuery(byKey)).to.have.deep.property("orderBy", [{ id: "desc" }]);
  });

  it("accepts a single order of a code module, like Prisma", () => {
    const code = { baseQuery: () => ({ orderBy: { notes: "asc" } }) as never };

    expect(listQuery(orders({ code }))).to.have.deep.property("orderBy", [{ notes: "asc" }, { id: "asc" }]);
  });

  it("searches the columns for the unchanged term, in any case", () => {
    const query = listQuery(orders(), "50%_\\");

    const contains = { contains: "50\\%\\_\\\\", mode: "insensitive" };
    expect(query).to.have.deep.property("where", {
      AND: [{ is_live: true }, { OR: [{ reference: contains }, { notes: contains }] }],
    });
  });

  it("ignores the term when no column is searchable", () => {
    const query = listQuery(orders({ searchableColumns: [], baseQuery: {} }), "x");

    expect(query).to.have.deep.property("where", {});
  });

  it("finds nothing for a term with a NUL", () => {
    expect(listQuery(orders(), "a\0b")).to.equal("nothing");
  });

  it("uses applySearch before the searchable columns", () => {
    const seen: unknown[] = [];
    const applySearch = (query: BaseQuery, search: string): BaseQuery => {
      seen.push(query, search);
      return { where: { OR: [{ user_id: 8 }, {}] }, orderBy: [{ rank: "desc" }] };
    };
    const query = listQuery(orders({ code: { applySearch } }), "x");

    expect(seen).to.deep.equal([orders().baseQuery, "x"]);
    expect(query).to.deep.equal({
      where: { OR: [{ user_id: 8 }, {}] },
      orderBy: [{ rank: "desc" }, { id: "asc" }],
      include: undefined,
    });
  });

  it("keeps changes of applySearch to its query from every other request", () => {
    const { baseQuery } = orders();
    const code = { applySearch: changing };
    for (const resource of [orders({ code }), orders({ code: { ...code, baseQuery: () => baseQuery } })]) {
      const before = structuredClone(listQuery(resource));

      expect(listQuery(resource, "x")).to.deep.equal({
        where: { is_live: true, reference: "x" },
        orderBy: [{ notes: "asc" }, { reference: "desc" }, { id: "asc" }],
        include: { customer: false },
      });
      expect(listQuery(resource)).to.deep.equal(before);
    }
  });

  it("passes applySearch the unchanged values of a base query in code", () => {
    const where = { since: new Date(0), amount: { gt: new Decimal("1.5") } };
    const code = { baseQuery: () => ({ where }), applySearch: (query: BaseQuery) => query };
    const found = listQuery(orders({ code }), "x");

    expect(found).to.have.nested.property("where.since", where.since);
    expect(found).to.have.nested.property("where.amount.gt", where.amount.gt);
  });

  it("keeps the include object, which is the key of the plan of a read, where applySearch does not change it", () => {
    const resource = orders({ code: { applySearch: (query) => ({ ...query, orderBy: [] }) } });
    const found = listQuery(resource, "x");

    expect(found).to.have.property("include", resource.baseQuery.include);
  });

  it("throws with the resource's name when applySearch does", () => {
    const code = {
      applySearch: () => {
        throw new Error("oops");
      },
    };

    expect(() => listQuery(orders({ code }), "x")).to.throw("applySearch of the resource orders failed");
  });
});

describe("baseQueryOf", () => {
  it("asks the code module each time, before the mapping file", () => {
    let times = 0;
    const baseQuery = (): BaseQuery => ({ where: { times: ++times } });
    const resource = orders({ code: { baseQuery } });

    expect([baseQueryOf(resource), baseQueryOf(resource)]).to.deep.equal([
      { where: { times: 1 } },
      { where: { times: 2 } },
    ]);
  });
});

describe("whereAll", () => {
  for (const [filters, where] of [
    [[], {}],
    [[undefined, {}], {}],
    [[{ a: 1 }, undefined], { a: 1 }],
    [[{ a: 1 }, { a: 2 }], { AND: [{ a: 1 }, { a: 2 }] }],
  ] as const) {
    it(`makes ${JSON.stringify(filters)} into ${JSON.stringify(where)}`, () => {
      expect(whereAll(filters)).to.deep.equal(where);
    });
  }
});
