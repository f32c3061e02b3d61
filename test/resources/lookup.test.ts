import { expect } from "chai";
import type { Caller } from "../../src/kit/caller.ts";
import { createAccessConditions } from "../../src/resources/access.ts";
import type { Sql } from "../../src/db/sql.ts";
import type { TextSql } from "../../src/db/text-sql.ts";
import { createStatementNames } from "../../src/db/statement-name.ts";
import { createInTransaction, type InTransaction, type Transaction } from "../../src/db/transaction.ts";
import { createLookup } from "../../src/resources/lookup.ts";
import { codeOf, messageOf } from "../../src/kit/errors.ts";
import type { Lookup } from "../../src/validation/validate.ts";
import { definition, definitionsOf, field, ownersOnly } from "../support/definitions.ts";
import { seed } from "./serving-api.ts";
import { definitions, servedOfSuite, variant, withVariant } from "./serving.ts";

const caller: Caller = { id: 7, name: "Ada", email: "ada@example.com", isAdmin: false, claims: {} };

const cases = [
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
] as const;

const lookupWithin = (within: Pick<Transaction, "sql" | "text">): Lookup => {
  const access = createAccessConditions(definitions);
  return createLookup({ own: variant("orders", {}), definitions, access, over: { within } })(caller);
};

describe("createLookup", () => {
  const served = servedOfSuite();
  let lookup: Lookup;

  const lookupOf = (name: string): Lookup => {
    const access = createAccessConditions(definitions);
    return createLookup({ own: variant(name, {}), definitions, access, over: served.records })(caller);
  };

  before(async () => {
    await seed(served);
    await served.sql("INSERT INTO countries (code, size) VALUES ('NO', 5)");
    await served.sql("CREATE TABLE texts AS SELECT 1 AS id, 'a'::tsvector AS words");
    await served.sql("UPDATE orders SET remarks = 'first' WHERE id = 1");
    lookup = lookupOf("orders");
  });

  for (const [target, column, value, isThere] of cases) {
    it(`answers ${isThere} for ${JSON.stringify(value)} in ${target}.${column}`, async () => {
      expect(await lookup.exists({ target, column, value })).to.equal(isThere);
    });
  }

  it("excludes the record that is being updated, among its own kind only", async () => {
    const own = { target: "orders", column: "reference", value: "A-1" };
    const other = { target: "customers", column: "name", value: "Acme" };

    const found = await Promise.all([
      lookup.exists({ ...own, except: 1 }),
      lookup.exists({ ...own, except: 2 }),
      lookup.exists({ ...other, except: 1 }),
    ]);

    expect(found).to.deep.equal([false, true, true]);
  });

  it("answers each of two concurrent callers by their own rights", async () => {
    const guarded = withVariant("orders", { access: { ...ownersOnly, reference: { kind: "owner" } } });
    const access = createAccessConditions(guarded);
    const given = { own: variant("customers", {}), definitions: guarded, access, over: served.records };
    const lookupFor = createLookup(given);
    const asked = { target: "orders", column: "id", value: 1, isReference: true };

    const found = [caller, { ...caller, id: 9 }, caller].map((one) => lookupFor(one).exists(asked));

    expect(await Promise.all(found)).to.deep.equal([true, false, true]);
  });

  it("limits references with a rule of their own to the base query of their target", async () => {
    const rules = { access: { ...ownersOnly, reference: { kind: "owner" } } } as const;
    const guarded = withVariant("orders", { ...rules, baseQuery: { where: { reference: "A-2" } } });
    const access = createAccessConditions(guarded);
    const given = { own: variant("customers", {}), definitions: guarded, access, over: served.records };
    const asked = { target: "orders", column: "id", isReference: true };

    const found = [1, 2].map((value) => createLookup(given)(caller).exists({ ...asked, value }));

    expect(await Promise.all(found)).to.deep.equal([false, true]);
  });

  it("refuses references that a base query limits by a filter that only Prisma knows", async () => {
    const rules = { access: { ...ownersOnly, reference: { kind: "owner" } } } as const;
    const where = { reference: { equals: "a-2", mode: "insensitive" } };
    const guarded = withVariant("orders", { ...rules, baseQuery: { where } });
    const access = createAccessConditions(guarded);
    const given = { own: variant("customers", {}), definitions: guarded, access, over: served.records };
    const asked = { target: "orders", column: "id", value: 1, isReference: true };

    const found = [caller, { ...caller, isAdmin: true }].map((one) => createLookup(given)(one).exists(asked));

    const [refused, admitted] = await Promise.allSettled(found);
    expect(messageOf((refused as PromiseRejectedResult).reason)).to.match(/^No record of orders can be/);
    expect(admitted).to.deep.equal({ status: "fulfilled", value: true });
  });

  it("also finds the resource by its table", async () => {
    const pages = lookupOf("pages");
    const query = { target: "site_pages", column: "slug", value: "two" };

    expect([
      await pages.exists({ ...query, except: "two" }),
      await pages.exists({ ...query, except: "a/b" }),
    ]).to.deep.equal([false, true]);
  });

  it("answers the others where one has a value that its type refuses, or a missing column", async () => {
    const found = await Promise.allSettled([
      lookup.exists({ target: "orders", column: "reference", value: "A-1" }),
      lookup.exists({ target: "texts", column: "words", value: "'" }),
      lookup.exists({ target: "countries", column: "name", value: "x" }),
      lookupOf("pages").exists({ target: "texts", column: "words", value: "a" }),
      lookup.exists({ target: "texts", column: "words", value: "a" }),
    ]);

    expect(found.map((one) => (one.status === "fulfilled" ? one.value : codeOf(one.reason)))).to.deep.equal([
      true,
      false,
      "42703",
      true,
      true,
    ]);
  });

  for (const what of ["one", "one that fails"])
    it(`runs one statement at a time for 1,000 values of a body, also after ${what}`, async () => {
      let [open, most, count] = [0, 0, 0];
      const reads: TextSql = async (text) => {
        most = Math.max(most, (open += 1));
        await new Promise((resolve) => setImmediate(resolve));
        [open, count] = [open - 1, count + 1];
        const answers = text.match(/EXISTS/g) ?? [];
        if (what !== "one" && answers.length > 1) throw Object.assign(new Error("bad"), { code: "22P02" });
        return [answers.map(() => "t")];
      };
      const access = createAccessConditions(definitions);
      const given = { own: variant("orders", {}), definitions, access, over: { reads } };
      const busy = createLookup(given)(caller);
      const asked = Array.from({ length: 1000 }, (_, index) =>
        busy.exists({ target: "customers", column: "id", value: index }),
      );

      expect(new Set(await Promise.all(asked))).to.deep.equal(new Set([true]));
      expect([most, count]).to.deep.equal([1, what === "one" ? 50 : 1050]);
    });

  it("finds bytes by the base64 of a body, and by the bytes to be written", async () => {
    await served.sql("CREATE TABLE files AS SELECT 1 AS id, 'hello'::bytea AS digest");
    const files = definition({ name: "files", fields: [field("digest", "Bytes", { isUnique: true })] });
    const access = createAccessConditions(definitions);
    const given = { own: files, definitions: definitionsOf(files), access, over: served.records };
    const found = createLookup(given)(caller);

    const values = ["aGVsbG8=", new Uint8Array(Buffer.from("hello")), "hello", "aGVsbA=="];
    const answers = values.map(async (value) => found.exists({ target: "files", column: "digest", value }));
    expect(await Promise.all(answers)).to.deep.equal([true, true, false, false]);
  });

  it("rejects for a missing column", async () => {
    let fault: unknown;
    try {
      await lookup.exists({ target: "countries", column: "name", value: "x" });
    } catch (error) {
      fault = error;
    }

    expect(fault)
      .to.be.instanceOf(Error)
      .with.property("message")
      .that.matches(/\bname\b/);
  });
});

describe("createLookup, in a transaction", () => {
  const served = servedOfSuite();
  const inTransaction: InTransaction = (work) =>
    createInTransaction(served.database.pool, createStatementNames(false))(work);

  const statementsFor = async (value: unknown): Promise<number> => {
    let count = 0;
    await inTransaction(async ({ sql, text }) => {
      const countedSql: Sql = (...given) => {
        count += 1;
        return sql(...given);
      };
      const countedText: TextSql = (...given) => {
        count += 1;
        return text(...given);
      };
      const within = { sql: countedSql, text: countedText };
      await lookupWithin(within).exists({ target: "customers", column: "id", value });
    });
    return count;
  };

  before(async () => {
    await seed(served);
    await served.sql("INSERT INTO countries (code, size) VALUES ('NO', 5)");
    await served.sql("CREATE TABLE texts AS SELECT 1 AS id, 'a'::tsvector AS words");
    await served.sql("UPDATE orders SET remarks = 'first' WHERE id = 1");
  });

  it("asks no more when its transaction has ended", async () => {
    let asked: readonly Promise<boolean>[] = [];
    const fault = await inTransaction(async (transaction) => {
      const lookup = lookupWithin(transaction);
      served.statements();
      asked = ["nowhere", ...Array<string>(30).fill("customers")].map((target, index) =>
        lookup.exists({ target, column: "id", value: `x${index}` }),
      );
      return Promise.all(asked);
    }).catch(codeOf);
    await Promise.allSettled(asked);

    const statements = served.statements();
    expect(fault).to.equal("42P01");
    expect(statements.slice(statements.indexOf("ROLLBACK"))).to.deep.equal(["ROLLBACK"]);
  });

  it("gives the same answers, all at once, and leaves the transaction unchanged", async () => {
    const [answers, count] = await inTransaction(async (transaction) => {
      const { sql } = transaction;
      const lookup = lookupWithin(transaction);
      await sql("INSERT INTO customers (name) VALUES ('Mine')");
      const found = await Promise.all(
        cases.map(([target, column, value]) => lookup.exists({ target, column, value })),
      );
      return [found, (await sql("SELECT FROM customers WHERE name = 'Mine'")).length];
    });

    expect(answers).to.deep.equal(cases.map(([, , , isThere]) => isThere));
    expect(count).to.equal(1);
  });

  it("answers for a value that a native type refuses, and leaves the transaction unchanged", async () => {
    const texts = definition({ name: "texts", fields: [field("words", "String", { native: "tsvector" })] });
    const all = new Map([...definitions, [texts.name, texts]]);
    const options = { own: texts, definitions: all, access: createAccessConditions(all) };

    const found = await inTransaction(async (transaction) => {
      const { sql } = transaction;
      const lookup = createLookup({ ...options, over: { within: transaction } })(caller);
      const asked = ["'", "a"].map((value) => lookup.exists({ target: "texts", column: "words", value }));
      return [await Promise.all(asked), (await sql("SELECT FROM customers WHERE name = 'Acme'")).length];
    });

    expect(found).to.deep.equal([[false, true], 1]);
  });

  it("sees rows that its transaction has written", async () => {
    const isThere = await inTransaction(async (transaction) => {
      const { sql } = transaction;
      await sql("INSERT INTO customers (name) VALUES ('Fresh')");
      return lookupWithin(transaction).exists({ target: "customers", column: "name", value: "Fresh" });
    });

    expect(isThere).to.equal(true);
  });

  it("takes one round trip for a value that certainly fits, three for another", async () => {
    expect([await statementsFor(5), await statementsFor("abc")]).to.deep.equal([1, 3]);
  });
});
