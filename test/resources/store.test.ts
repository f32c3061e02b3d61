import { expect } from "chai";
import { AppError } from "../../src/kit/errors.ts";
import type { Field, Row } from "../../src/mapping/definition.ts";
import { always, type Condition } from "../../src/querying/condition.ts";
import { listQuery } from "../../src/resources/query.ts";
import { createPrismaStore } from "../../src/resources/prisma-store.ts";
import type { Found, ListQuery, RecordStore } from "../../src/resources/record-store.ts";
import { createStore } from "../../src/resources/store.ts";
import { createViews } from "../../src/resources/record-view.ts";
import { definitions, servedOfSuite, variant, type ServedDatabase } from "./serving.ts";

const unasked = {
  access: always,
  filter: always,
  userId: 1,
  sort: undefined,
  fields: undefined,
  related: [],
  asked: [],
};

const queryOf = (search: string | undefined): ListQuery => {
  const query = listQuery(variant("orders", {}), search);
  if (query === "nothing") throw new Error("nothing to ask");
  return { ...query, ...unasked };
};

const shown = (text: string): Row => JSON.parse(text) as Row;

const asRead = (record: Found): Row => shown(record.json());

const plain = { where: {}, orderBy: [{ id: "asc" }], include: undefined, ...unasked };

/**
 * Both meet the same contract: the Prisma client answers queries that the compiler does not
 * support.
 */
const makers = {
  createStore(name: string, { records }: ServedDatabase): RecordStore {
    const definition = variant(name, {});
    return createStore({
      definition,
      definitions,
      views: createViews(definition, definitions),
      database: records,
    });
  },
  createPrismaStore: (name: string, { models }: ServedDatabase): RecordStore =>
    createPrismaStore({ definition: variant(name, {}), definitions, models: async () => models }),
};

for (const [maker, make] of Object.entries(makers))
  describe(maker, () => {
    const served = servedOfSuite();
    let orders: RecordStore;
    let customers: RecordStore;

    before(async () => {
      orders = make("orders", served);
      customers = make("customers", served);
    });

    beforeEach(async () => {
      await served.sql("TRUNCATE orders, customers RESTART IDENTITY");
      await served.sql("INSERT INTO customers (name) VALUES ('Ada'), ('Bob')");
      await served.sql(
        `INSERT INTO orders (reference, amount, remarks, customer_id, user_id) VALUES
       ('A-1', 10, '100% off', 1, 7), ('A-2', 20, 'snake_case', null, 7), ('b-3', 30, 'back\\slash\\', 1, 8)`,
      );
      served.statements();
    });

    describe("list", () => {
      for (const [search, references] of [
        ["a-", ["A-1", "A-2"]],
        ["B-3", ["b-3"]],
        ["%", ["A-1"]],
        ["0%", ["A-1"]],
        ["_", ["A-2"]],
        ["e_C", ["A-2"]],
        ["\\", ["b-3"]],
        ["\\s", ["b-3"]],
        ["\\%", []],
        ["-", ["A-1", "A-2", "b-3"]],
        ["nobody", []],
        ["'; DROP TABLE orders; --", []],
      ] as const) {
        it(`finds ${references.length} records by ${search}`, async () => {
          const { records, total } = await orders.list(queryOf(search), {
            skip: 0,
            take: 15,
            count: "exact",
          });

          expect(records.map((text) => shown(text)["reference"])).to.deep.equal(references);
          expect(total).to.equal(references.length);
        });
      }

      it("takes one statement when the first page is not full", async () => {
        await orders.list(plain, { skip: 0, take: 4, count: "exact" });

        expect(served.statements()).to.have.lengthOf(1);
      });

      it("counts when a page is full, and not at the end of the list", async () => {
        for (const [skip, found, counts] of [
          [0, 2, 1],
          [2, 1, 0],
        ] as const) {
          const { records, total } = await orders.list(plain, { skip, take: 2, count: "exact" });

          const statements = served.statements().length;
          expect([records.length, total, statements]).to.deep.equal([
            found,
            3,
            maker === "createStore" ? 1 : 1 + counts,
          ]);
        }
      });

      it("counts past the end", async () => {
        const { records, total } = await orders.list(plain, { skip: 30, take: 15, count: "exact" });

        expect([records.length, total]).to.deep.equal([0, 3]);
      });

      it("accepts the largest offset", async () => {
        const { total } = await orders.list(plain, { skip: 2 ** 31 - 1, take: 100, count: "exact" });

        expect(total).to.equal(3);
      });
    });

    describe("find", () => {
      it("answers the record with its relations", async () => {
        const record = await orders.find(1, {
          where: undefined,
          shape: { include: { customer: true } },
          access: always,
        });

        expect(record?.access).to.include({ id: 1, user_id: 7 });
        expect(shown(record?.json() ?? "")).to.include({ id: 1, reference: "A-1", customer: "Ada" });
      });

      it("answers undefined outside the filter, and for a key that no text column can hold", async () => {
        expect(
          await orders.find(1, { where: { user_id: 8 }, shape: { include: undefined }, access: always }),
        ).to.equal(undefined);

        const pages = make("pages", served);
        expect(
          await pages.find("a\0b", { where: undefined, shape: { include: undefined }, access: always }),
        ).to.equal(undefined);
      });
    });

    describe("create", () => {
      const fresh = { reference: "N-1", amount: "1.50", user_id: 7 };

      it("answers the record with the database's defaults", async () => {
        const row = await orders.create({
          data: fresh,
          include: { customer: true },
          present: asRead,
          isUndone: false,
          userId: 1,
          access: always,
        });

        expect(row).to.include({ id: 4, status: "open", customer: null });
      });

      for (const [what, change, errors] of [
        [
          "a value that is taken",
          { reference: "A-1" },
          { reference: ["The reference has already been taken."] },
        ],
        [
          "a reference to nothing",
          { customer_id: 99 },
          { customer_id: ["The selected customer id is invalid."] },
        ],
        ["a value outside a check", { status: "lost" }, {}],
        ["a value that is too large", { amount: "99999999999999" }, {}],
      ] as const) {
        it(`refuses ${what} with 422`, async () => {
          const refusal = await refusalOf(
            orders.create({
              data: { ...fresh, ...change },
              include: undefined,
              present: asRead,
              isUndone: false,
              userId: 1,
              access: always,
            }),
          );

          expect([refusal.status, refusal.errors]).to.deep.equal([422, errors]);
        });
      }
    });

    describe("update", () => {
      it("changes the record and answers it", async () => {
        const row = await orders.update(1, {
          where: { user_id: 7 },
          data: { notes: "changed" },
          include: { customer: true },
          present: asRead,
          isUndone: false,
          userId: 1,
          access: always,
        });

        expect(row).to.include({ id: 1, notes: "changed", reference: "A-1" });
        expect(row).to.have.property("customer", "Ada");
      });

      it("answers undefined, and changes nothing, when the filter excludes the record", async () => {
        const row = await orders.update(1, {
          where: { user_id: 8 },
          data: { notes: "x" },
          include: undefined,
          present: asRead,
          isUndone: false,
          userId: 1,
          access: always,
        });

        expect(row).to.equal(undefined);
        expect(await served.sql("SELECT remarks FROM orders WHERE id = 1")).to.deep.equal([
          { remarks: "100% off" },
        ]);
      });

      it("refuses a value that is in use with 422 on its field", async () => {
        const refusal = await refusalOf(
          orders.update(1, {
            where: {},
            data: { reference: "A-2" },
            include: undefined,
            present: asRead,
            isUndone: false,
            userId: 1,
            access: always,
          }),
        );

        expect(refusal.errors).to.deep.equal({ reference: ["The reference has already been taken."] });
      });
    });

    describe("remove", () => {
      it("deletes only the record of the filter", async () => {
        expect(await orders.remove(1, { where: { user_id: 8 }, access: always })).to.equal(false);
        expect(await orders.remove(1, { where: { user_id: 7 }, access: always })).to.equal(true);
        expect(await orders.remove(1, { where: {}, access: always })).to.equal(false);
        expect(await served.sql("SELECT id FROM orders ORDER BY id")).to.deep.equal([{ id: 2 }, { id: 3 }]);
      });

      it("refuses with 409 while other records refer to it", async () => {
        const refusal = await refusalOf(customers.remove(1, { where: {}, access: always }));

        expect([refusal.status, refusal.code]).to.deep.equal([409, "record.referenced"]);
        expect(await customers.remove(2, { where: {}, access: always })).to.equal(true);
      });

      for (const [action, column] of [
        ["SET NULL", "int NOT NULL"],
        ["SET DEFAULT", "int DEFAULT 2 CHECK (customer_id <> 2)"],
        ["SET DEFAULT", "int DEFAULT 2 UNIQUE"],
      ] as const) {
        it(`refuses with 409 where ${action} breaks a reference of ${column}`, async () => {
          await served.sql("DELETE FROM orders");
          await served.sql(
            `CREATE TABLE referring (customer_id ${column} REFERENCES customers ON DELETE ${action})`,
          );
          await served.sql("INSERT INTO referring VALUES (1)");
          if (column.endsWith("UNIQUE")) await served.sql("INSERT INTO referring VALUES (2)");

          const refusal = await refusalOf(customers.remove(1, { where: {}, access: always }));
          await served.sql("DROP TABLE referring");

          expect([refusal.status, refusal.code]).to.deep.equal([409, "record.referenced"]);
        });
      }
    });

    it("shows, changes, deletes and creates no record outside a rule of access, each in one call", async () => {
      const [field] = variant("orders", {}).fields.filter(({ name }) => name === "user_id");
      const access: Condition = { kind: "compare", field: field as Field, operator: "=", value: "8" };
      const write = { include: undefined, present: asRead, isUndone: false, userId: 8, access };
      const before = await served.sql("SELECT * FROM orders ORDER BY id");

      const found = await orders.find(1, { where: {}, shape: { include: undefined }, access });
      const { total } = await orders.list({ ...plain, access }, { skip: 0, take: 15, count: "exact" });
      const changed = await orders.update(1, { ...write, where: {}, data: { notes: "x" } });
      const isRemoved = await orders.remove(1, { where: {}, access });
      const data = { reference: "N-1", amount: "1.50", user_id: 7 };
      const { code } = await refusalOf(orders.create({ ...write, data }));

      expect([found?.isAllowed, total, changed, isRemoved]).to.deep.equal([false, 1, undefined, false]);
      expect(code).to.equal("record.forbidden");
      expect(await served.sql("SELECT * FROM orders ORDER BY id")).to.deep.equal(before);
    });
  });

async function refusalOf(outcome: Promise<unknown>): Promise<AppError> {
  try {
    await outcome;
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
  throw new Error("it was not refused");
}
