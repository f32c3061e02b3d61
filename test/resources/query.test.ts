import { expect } from "chai";
import type { BaseQuery, Definition } from "../../src/mapping/definition.ts";
import { allOf, baseQueryOf, listQuery } from "../../src/resources/query.ts";
import { definition, field } from "../support/definitions.ts";

const owner = { user_id: 7 };

const orders = (overrides: Partial<Definition> = {}): Definition =>
  definition({
    name: "orders",
    fields: [field("reference", "String"), field("notes", "String")],
    searchableColumns: ["reference", "notes"],
    baseQuery: { where: { is_live: true }, orderBy: [{ reference: "desc" }], include: { customer: true } },
    ...overrides,
  });

describe("listQuery", () => {
  it("asks for the base query's records that the owner filter leaves", () => {
    expect(listQuery({ definition: orders(), owner, search: undefined })).to.deep.equal({
      where: { AND: [{ is_live: true }, { user_id: 7 }] },
      orderBy: [{ reference: "desc" }, { id: "asc" }],
      include: { customer: true },
    });
  });

  it("asks for everything without filters", () => {
    const plain = orders({ baseQuery: {} });

    expect(listQuery({ definition: plain, owner: undefined, search: "" })).to.deep.equal({
      where: {},
      orderBy: [{ id: "asc" }],
      include: undefined,
    });
  });

  it("keeps an order that has the key already", () => {
    const byKey = orders({ baseQuery: { orderBy: [{ id: "desc" }] } });

    expect(listQuery({ definition: byKey, owner, search: undefined })).to.have.deep.property("orderBy", [
      { id: "desc" },
    ]);
  });

  it("takes a single order of a code module, which Prisma takes, too", () => {
    const code = { baseQuery: () => ({ orderBy: { notes: "asc" } }) as never };

    expect(listQuery({ definition: orders({ code }), owner, search: undefined })).to.have.deep.property(
      "orderBy",
      [{ notes: "asc" }, { id: "asc" }],
    );
  });

  it("finds nothing for a caller who may see nothing", () => {
    expect(listQuery({ definition: orders(), owner: "nothing", search: undefined })).to.equal("nothing");
  });

  it("searches the columns for the term as it is, in any case", () => {
    const query = listQuery({ definition: orders(), owner, search: "50%_\\" });

    const contains = { contains: "50\\%\\_\\\\", mode: "insensitive" };
    expect(query).to.have.deep.property("where", {
      AND: [
        {
          AND: [{ is_live: true }, { OR: [{ reference: contains }, { notes: contains }] }],
        },
        { user_id: 7 },
      ],
    });
  });

  it("ignores the term when no column is searchable", () => {
    const query = listQuery({
      definition: orders({ searchableColumns: [], baseQuery: {} }),
      owner,
      search: "x",
    });

    expect(query).to.have.deep.property("where", { user_id: 7 });
  });

  it("finds nothing for a term with a NUL", () => {
    expect(listQuery({ definition: orders(), owner: undefined, search: "a\0b" })).to.equal("nothing");
  });

  it("takes applySearch before the searchable columns, and adds the owner filter to whatever it answers", () => {
    const seen: unknown[] = [];
    const applySearch = (query: BaseQuery, search: string): BaseQuery => {
      seen.push(query, search);
      return { where: { OR: [{ user_id: 8 }, {}] }, orderBy: [{ rank: "desc" }] };
    };
    const query = listQuery({ definition: orders({ code: { applySearch } }), owner, search: "x" });

    expect(seen).to.deep.equal([orders().baseQuery, "x"]);
    expect(query).to.deep.equal({
      where: { AND: [{ OR: [{ user_id: 8 }, {}] }, { user_id: 7 }] },
      orderBy: [{ rank: "desc" }, { id: "asc" }],
      include: undefined,
    });
  });

  it("throws with the resource's name when applySearch does", () => {
    const code = {
      applySearch: () => {
        throw new Error("oops");
      },
    };

    expect(() => listQuery({ definition: orders({ code }), owner, search: "x" })).to.throw(
      "applySearch of the resource orders failed",
    );
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

describe("allOf", () => {
  for (const [filters, where] of [
    [[], {}],
    [[undefined, {}], {}],
    [[{ a: 1 }, undefined], { a: 1 }],
    [[{ a: 1 }, { a: 2 }], { AND: [{ a: 1 }, { a: 2 }] }],
  ] as const) {
    it(`makes ${JSON.stringify(filters)} into ${JSON.stringify(where)}`, () => {
      expect(allOf(filters)).to.deep.equal(where);
    });
  }
});
