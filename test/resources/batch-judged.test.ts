import { expect } from "chai";
import type { Access, Definitions } from "../../src/mapping/definition.ts";
import { definitionsOf, ownersOnly } from "../support/definitions.ts";
import { apiOfSuite, ask, errorsOf, seed, startApi } from "./serving-api.ts";
import { variant, withVariant } from "./serving.ts";

type Where = Readonly<Record<string, unknown>>;

const accessWith = (where: Where): { readonly access: Access } => ({
  access: { ...ownersOnly, create: { kind: "filter", where } },
});

const pages = Array.from({ length: 5 }, (_, place) => ({ slug: `p${place}`, title: "new" }));
const orders = pages.map((_, place) => ({
  reference: `N-${place}`,
  amount: 5,
  customer_id: 1,
  status: place < 4 ? "open" : "paid",
}));

/** Returns the definitions, with a resource of the table that also has the records of `orders`. */
const withParent = (where: Where): Definitions => {
  const parent = variant("orders", { name: "all_orders", model: "AllOrder", table: "all_orders" });
  const own = variant("orders", accessWith(where));
  return definitionsOf(...withVariant("orders", own).values(), parent);
};

/** Each record but the last fits only through the last one. */
const cases = [
  {
    what: "a trigger of the table",
    request: "/pages",
    data: pages,
    resources: withVariant("pages", accessWith({ title: "fit" })),
    sql: `CREATE FUNCTION make_fit() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN UPDATE site_pages SET title = 'fit' WHERE NEW.slug = 'p4'; RETURN NULL; END $$;
      CREATE TRIGGER make_fit AFTER INSERT ON site_pages FOR EACH ROW EXECUTE FUNCTION make_fit()`,
    undo: "DROP FUNCTION make_fit CASCADE",
  },
  {
    what: "a rule of the table",
    request: "/pages",
    data: pages,
    resources: withVariant("pages", accessWith({ title: "fit" })),
    sql: `CREATE RULE make_fit AS ON INSERT TO site_pages
      DO ALSO UPDATE site_pages SET title = 'fit' WHERE NEW.slug = 'p4'`,
    undo: "DROP RULE make_fit ON site_pages",
  },
  {
    what: "the parent of the table",
    request: "/orders",
    data: orders,
    resources: withParent({ customer: { all_orders: { some: { status: "paid" } } } }),
    sql: "CREATE TABLE all_orders (LIKE orders); ALTER TABLE orders INHERIT all_orders",
    undo: "ALTER TABLE orders NO INHERIT all_orders; DROP TABLE all_orders",
  },
] as const;

describe("batches of creates with a rule of access", () => {
  const { served } = apiOfSuite();

  beforeEach(() => seed(served));

  for (const { what, request, data, resources, sql, undo } of cases)
    it(`are refused where a record fits by ${what} only after later ones`, async () => {
      await served.database.pool.query(sql);
      const own = await startApi(served, resources);
      try {
        const operations = data.map((one) => ({ method: "create", data: one }));
        const answer = await ask(own, "ada", `POST ${request}/batch`, { operations });

        const errors = { "operations.0.data": ["This action is unauthorized."] };
        expect(errorsOf(answer)).to.deep.equal([403, errors]);
      } finally {
        await own.server.close();
        await served.database.pool.query(undo);
      }
    });

  it("are refused where a trigger closes for a record the target of an earlier one", async () => {
    await served.database.pool.query(
      `CREATE FUNCTION close_it() RETURNS trigger LANGUAGE plpgsql AS $$
       BEGIN UPDATE customers SET country = 'closed' WHERE id = NEW.customer_id; RETURN NULL; END $$;
       CREATE TRIGGER close_it AFTER INSERT ON orders FOR EACH ROW EXECUTE FUNCTION close_it()`,
    );
    const access: Access = { ...ownersOnly, reference: { kind: "filter", where: { country: null } } };
    const own = await startApi(served, withVariant("customers", { access }));
    try {
      const operations = orders.map((one) => ({ method: "create", data: one }));
      const answer = await ask(own, "ada", "POST /orders/batch", { operations });

      const errors = { "operations.1.data.customer_id": ["The selected customer id is invalid."] };
      expect(errorsOf(answer)).to.deep.equal([422, errors]);
    } finally {
      await own.server.close();
      await served.database.pool.query("DROP FUNCTION close_it CASCADE");
    }
  });
});

describe("batches of creates with a rule of values", () => {
  const { served } = apiOfSuite();

  beforeEach(() => seed(served));

  for (const [rule, change, message] of [
    ["exists", "DELETE FROM notices", "The selected title is invalid."],
    ["unique", "INSERT INTO notices (text) VALUES (NEW.title)", "The title has already been taken."],
  ] as const)
    it(`are refused where a trigger changes the columns of ${rule}`, async () => {
      await served.database.pool.query(
        `CREATE FUNCTION change_it() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${change}; RETURN NULL; END $$;
         CREATE TRIGGER change_it AFTER INSERT ON site_pages FOR EACH ROW EXECUTE FUNCTION change_it()`,
      );
      const createRules = { slug: "required|string", title: `required|string|${rule}:notices,text` };
      const own = await startApi(served, withVariant("pages", { createRules }));
      try {
        const title = rule === "exists" ? "hello" : "new";
        const operations = ["a", "b"].map((slug) => ({ method: "create", data: { slug, title } }));
        const answer = await ask(own, "ada", "POST /pages/batch", { operations });

        expect(errorsOf(answer)).to.deep.equal([422, { "operations.1.data.title": [message] }]);
      } finally {
        await own.server.close();
        await served.database.pool.query("DROP FUNCTION change_it CASCADE");
      }
    });
});
