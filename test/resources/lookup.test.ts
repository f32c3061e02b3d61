import { expect } from "chai";
import type { Caller } from "../../src/kit/caller.ts";
import { createAccessConditions } from "../../src/resources/access.ts";
import { createLookup } from "../../src/resources/lookup.ts";
import type { Lookup } from "../../src/resources/rules.ts";
import { seed } from "./serving-api.ts";
import { definitions, openServedDatabase, variant, type ServedDatabase } from "./serving.ts";

const caller: Caller = { id: 7, name: "Ada", email: "ada@example.com", isAdmin: false };

describe("createLookup", () => {
  let served: ServedDatabase;
  let lookup: Lookup;

  const lookupOf = (name: string): Lookup => {
    const access = createAccessConditions(definitions);
    return createLookup({ own: variant(name, {}), definitions, sql: served.sql, access })(caller);
  };

  before(async () => {
    served = await openServedDatabase();
    await seed(served);
    await served.sql("INSERT INTO countries (code, size) VALUES ('NO', 5)");
    await served.sql("UPDATE orders SET remarks = 'first' WHERE id = 1");
    lookup = lookupOf("orders");
  });

  after(() => served.close());

  for (const [target, column, value, isThere] of [
    ["orders", "reference", "A-1", true],
    ["orders", "reference", "a-1", false],
    ["orders", "reference", "A-_", false],
    ["orders", "notes", "first", true],
    ["orders", "remarks", "first", true],
    ["customers", "id", 1, true],
    ["customers", "id", "1", true],
    ["customers", "id", 99, false],
    ["customers", "id", "abc", false],
    ["customers", "id", 1.5, false],
    ["customers", "id", 1e30, false],
    ["customers", "id", { in: [1] }, false],
    ["customers", "name", "a\0b", false],
    ["customers", "name", "' OR 1=1 --", false],
    ["pages", "slug", "two", true],
    ["site_pages", "slug", "two", true],
    ["pages", "is_hidden", true, true],
    ["countries", "code", "NO", true],
    ["countries", "code", "SE", false],
  ] as const) {
    it(`answers ${isThere} for ${JSON.stringify(value)} in ${target}.${column}`, async () => {
      expect(await lookup.exists({ target, column, value })).to.equal(isThere);
    });
  }

  it("leaves aside the record that is being updated, among its own kind only", async () => {
    const own = { target: "orders", column: "reference", value: "A-1" };
    const other = { target: "customers", column: "name", value: "Acme" };

    expect([
      await lookup.exists({ ...own, except: 1 }),
      await lookup.exists({ ...own, except: 2 }),
      await lookup.exists({ ...other, except: 1 }),
    ]).to.deep.equal([false, true, true]);
  });

  it("knows the resource by its table, too", async () => {
    const pages = lookupOf("pages");
    const query = { target: "site_pages", column: "slug", value: "two" };

    expect([
      await pages.exists({ ...query, except: "two" }),
      await pages.exists({ ...query, except: "a/b" }),
    ]).to.deep.equal([false, true]);
  });

  it("rejects for a column that is not there", async () => {
    let fault: unknown;
    try {
      await lookup.exists({ target: "countries", column: "name", value: "x" });
    } catch (error) {
      fault = error;
    }

    expect(fault)
      .to.be.instanceOf(Error)
      .with.property("message")
      .that.matches(/"name"/);
  });
});
