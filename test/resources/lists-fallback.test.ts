import { expect } from "chai";
import type { BaseQuery, Definition } from "../../src/mapping/definition.ts";
import { ownersOnly } from "../support/definitions.ts";
import { ask, errorsOf, idsOf, seed, startApi, type Api } from "./serving-api.ts";
import { openServedDatabase, servedOfSuite, withVariant } from "./serving.ts";

const onlyPrisma = (): BaseQuery => ({ where: { reference: { equals: "a-1", mode: "insensitive" } } });

const bothByPrisma = (): BaseQuery => ({
  where: { reference: { in: ["a-1", "b-1"], mode: "insensitive" } },
});

describe("lists of a code module with arguments that only Prisma knows", () => {
  const served = servedOfSuite();
  let api: Api;

  before(() => seed(served));

  afterEach(async () => {
    await api.server.close();
    served.fallbacks.splice(0);
  });

  async function serveWith(name: string, changes: Partial<Definition>): Promise<void> {
    api = await startApi(served, withVariant(name, changes));
  }

  it("are answered by Prisma, and counted each time", async () => {
    await serveWith("orders", { code: { baseQuery: onlyPrisma } });
    const [list, page, one, other] = [
      await ask(api, "root", "GET /orders"),
      await ask(api, "root", "GET /orders?page=2&per_page=1&search=A"),
      await ask(api, "root", "GET /orders/1"),
      await ask(api, "root", "GET /orders/2"),
    ];
    expect([idsOf(list), idsOf(page), one.status, other.status]).to.deep.equal([[1], [], 200, 404]);
    expect(served.fallbacks).to.deep.equal(["orders", "orders", "orders", "orders"]);
  });

  it("take what a mapping file may have: texts for times and decimals, null for a required field", async () => {
    const where = {
      ...onlyPrisma().where,
      OR: [
        { created_at: { lt: "2020-01-01" }, status: { equals: "PAID", mode: "insensitive" } },
        { status: null },
        { id: 1 },
      ],
      NOT: { amount: { in: ["NaN", 1] } },
      created_at: { gte: "2020-01-01" },
      customer: { orders: { some: { ...onlyPrisma().where, created_at: { gte: "2020-01-01" } } } },
    };
    await serveWith("orders", { baseQuery: { where } });
    const [list, one, changed] = [
      await ask(api, "root", "GET /orders"),
      await ask(api, "root", "GET /orders/1"),
      await ask(api, "root", "PATCH /orders/1", { notes: "by Prisma" }),
    ];
    expect([idsOf(list), one.status, changed.status]).to.deep.equal([[1], 200, 200]);
    expect(served.fallbacks).to.deep.equal(["orders", "orders", "orders", "orders"]);
  });

  for (const parameter of ["filter[amount]=10", "sort=-amount", "fields=id", "cursor=", "count=none"])
    it(`refuse ${parameter}, which Prisma does not support`, async () => {
      await serveWith("orders", { code: { baseQuery: onlyPrisma } });
      const answer = await ask(api, "root", `GET /orders?${parameter}`);
      const message =
        "Lists of orders cannot be asked for this: their code module gives arguments that only Prisma knows.";
      expect(errorsOf(answer)).to.deep.equal([422, { [parameter.split("=")[0] ?? ""]: [message] }]);
    });

  for (const [what, where, ids] of [
    ["another way", { OR: [{ user_id: "$user.id" }, { notes: "$user.claims.x" }] }, [1]],
    ["another value", { OR: [{ user_id: "$user.id" }, { notes: { in: ["$user.claims.x", "n"] } }] }, [1, 3]],
    ["all", { OR: [{ notes: "$user.claims.x" }, { NOT: { notes: { notIn: "$user.claims.x" } } }] }, []],
  ] as const)
    it(`have the records of a rule of access where ${what} is a missing claim`, async () => {
      const access = { ...ownersOnly, read: { kind: "filter", where } } as const;
      await served.sql("UPDATE orders SET remarks = 'n' WHERE id = 3");
      await serveWith("orders", { access, code: { baseQuery: bothByPrisma } });

      const list = await ask(api, "ada", "GET /orders");
      const statuses = await Promise.all(
        [1, 3].map(async (id) => (await ask(api, "ada", `GET /orders/${id}`)).status),
      );

      expect(idsOf(list)).to.deep.equal(ids);
      expect(statuses).to.deep.equal([1, 3].map((id) => (ids.some((one) => one === id) ? 200 : 403)));
      expect(served.fallbacks).to.deep.equal(["orders", "orders", "orders"]);
    });

  it("cannot be included in others", async () => {
    await serveWith("customers", {
      code: { baseQuery: () => ({ where: { name: { equals: "acme", mode: "insensitive" } } }) },
    });
    const customers = withVariant("customers", {
      code: { baseQuery: () => ({ where: { name: { equals: "acme", mode: "insensitive" } } }) },
    });
    const orders = customers.get("orders") as Definition;
    const including = await startApi(
      served,
      new Map([...customers, ["orders", { ...orders, includes: ["customer"] }]]),
    );
    const answer = await ask(including, "root", "GET /orders?include=customer");
    await including.server.close();
    expect(errorsOf(answer)).to.deep.equal([
      422,
      {
        include: [
          "The relation customer cannot be included: the code module of customers gives arguments that only Prisma knows.",
        ],
      },
    ]);
  });
});

describe("an included record with a transform in code", () => {
  it("is shown through it, and null where there is none", async () => {
    const served = await openServedDatabase();
    await seed(served);
    const customers = withVariant("customers", {
      code: { transform: ({ name }) => ({ label: `* ${String(name)}` }) },
    });
    const orders = customers.get("orders") as Definition;
    const api = await startApi(
      served,
      new Map([...customers, ["orders", { ...orders, includes: ["customer"] }]]),
    );
    const { json } = await ask(api, "root", "GET /orders?include=customer&fields=id&sort=id");
    await api.server.close();
    await served.close();
    expect((json as { data: unknown }).data).to.deep.equal([
      { id: 1, customer: { label: "* Acme" } },
      { id: 2, customer: null },
      { id: 3, customer: { label: "* Bolt" } },
    ]);
  });
});
