import { expect } from "chai";
import { openDatabase, type Database } from "../../src/db/client.ts";
import type { ModelsClient } from "../../src/db/models-client.ts";
import { openModelsClient } from "../../src/db/prisma-internals/models-client.ts";
import { createSql } from "../../src/db/sql.ts";
import { createTextSql } from "../../src/db/text-sql.ts";
import { createOutbox, type OutboxEvent } from "../../src/events/outbox.ts";
import { createOutboxCursor } from "../../src/events/outbox-cursor.ts";
import { createLog } from "../../src/telemetry/log.ts";
import { applyMigration } from "../../src/app/apply-migration.ts";
import type { CodeModule, Definition, Definitions, Row } from "../../src/mapping/definition.ts";
import { prismaSchemaOf } from "../../src/mapping/models.ts";
import { createEventPresenter, type Presented, type PresentedAll } from "../../src/events/event-presenter.ts";
import { baseQueryOf } from "../../src/resources/query.ts";
import { createTransform } from "../../src/querying/transform.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { definition, definitionsOf, field } from "../support/definitions.ts";

const reference = (resource: string, target: string, as: string) =>
  ({ references: { resource, field: target, as, onDelete: "cascade" } }) as const;

const shops = definition({
  name: "shops",
  fields: [
    field("name", "String"),
    field("code", "String", { isOptional: true, isUnique: true }),
    field("opened_at", "DateTime", { isUnique: true }),
  ],
});

/** At most one for a shop. */
const licences = definition({
  name: "licences",
  fields: [
    field("number", "BigInt"),
    field("shop_id", "Int", { isUnique: true, ...reference("shops", "id", "shop") }),
  ],
});

const sales = definition({
  name: "sales",
  fields: [
    field("big", "BigInt"),
    field("amount", "Decimal", { precision: 20, scale: 4 }),
    field("ratio", "Float"),
    field("photo", "Bytes"),
    field("sold_at", "DateTime"),
    field("document", "Json", { isOptional: true }),
    field("tags", "String", { isList: true }),
    field("token", "Uuid"),
    field("state", "Enum", { values: ["open", "paid"] }),
    field("nothing", "Decimal", { isOptional: true }),
    field("shop_id", "Int", { isOptional: true, ...reference("shops", "id", "shop") }),
  ],
});

/** Refers to shops by a date. */
const parties = definition({
  name: "parties",
  fields: [field("opening", "DateTime", { isOptional: true, ...reference("shops", "opened_at", "host") })],
});

/** Refers to shops by a nullable field of the shop. */
const visits = definition({
  name: "visits",
  fields: [field("shop_code", "String", { isOptional: true, ...reference("shops", "code", "shop") })],
});

const base = definitionsOf(shops, licences, sales, parties, visits);

/** Returns `base` with one of its definitions changed. */
function withChange(name: string, overrides: Partial<Definition>): Definitions {
  return new Map([...base, [name, { ...(base.get(name) as Definition), ...overrides }]]);
}

/** Shows the row as it is, relations included. */
const asIs: CodeModule = { transform: (row: Row) => row };

/** Returns the result of each event; a resource that failed as a whole has one reason for all. */
const answersOf = (all: PresentedAll): readonly Presented[] =>
  all.kind === "each" ? all.answers : [{ kind: "refused", reason: all.reason }];
const dataOf = (presented: readonly Presented[]): readonly unknown[] =>
  presented.map((answer) => (answer.kind === "presented" ? answer.data : answer.reason));

describe("createEventPresenter", () => {
  let created: TestDatabase;
  let database: Database;
  let models: ModelsClient;
  let asked: string[];
  const log = createLog({ level: "silent" });
  const delegateOf = async (model: string) => (asked.push(model), models.relayDelegate(model));
  const presenterOf = (
    definitions: Definitions,
    { pool } = database,
  ): ReturnType<typeof createEventPresenter> =>
    createEventPresenter({ definitions, sql: createTextSql(pool, () => undefined), delegateOf });

  before(async () => {
    created = await createTestDatabase();
    await applyMigration({ url: created.url, definitions: base, allowDestructive: false, log });
    database = await openDatabase({ url: created.url, poolSize: 4, isEmbedded: false });
    const schemaText = prismaSchemaOf(base);
    models = await openModelsClient({ schemaText, pool: database.pool, isEmbedded: false });
  });

  beforeEach(async () => {
    asked = [];
    await database.pool.query(
      "TRUNCATE shops, licences, sales, parties, visits, svc.events, svc.outbox RESTART IDENTITY CASCADE",
    );
    await database.pool.query(`
      INSERT INTO shops (name, code, opened_at) VALUES
        ('North', 'n', '2026-01-01T08:00:00.123Z'), ('South', null, '2026-01-01T08:00:00.456Z');
      DELETE FROM svc.events`);
  });

  after(async () => {
    await models.close();
    await database.close();
    await created.drop();
  });

  const addSale = (more = ""): Promise<unknown> =>
    database.pool.query(
      `INSERT INTO sales (big, amount, ratio, photo, sold_at, tags, token, state, shop_id, document)
       SELECT 9007199254740993, 1234567890123456.7800, 0.1::float8 + 0.2, '\\x00ff10', '2026-03-28T16:30:00.1239+02:00', '{a,"b c"}',
         'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11', 'paid', 1, '{"a": [1, null, "\\u00e9"]}' ${more}`,
    );

  /**
   * Returns the events that the tables' triggers have captured, oldest first, without deleted ones.
   */
  async function captured(): Promise<readonly OutboxEvent[]> {
    const resources = [...base.keys()];
    const sql = createSql({ pool: database.pool, isEmbedded: false });
    const { events } = await createOutbox({ sql }).read({
      scans: createOutboxCursor(resources).scans(resources),
      share: { name: "svc", others: [] },
      known: [],
      limit: 100,
      maxBytes: 1024 ** 2,
    });
    const found = events.filter((event): event is OutboxEvent => event.snapshot !== null);
    return found.toSorted((one, other) => Number(one.id) - Number(other.id));
  }

  /** Presents the events of one resource all together, as the relay does. */
  async function present(definitions: Definitions, name: string): Promise<readonly Presented[]> {
    const events = (await captured()).filter(({ resource }) => resource === name);
    return answersOf(await presenterOf(definitions)(name, events));
  }

  /** Returns the API's answer for every record of the resource. */
  async function answers(definitions: Definitions, name: string): Promise<readonly unknown[]> {
    const one = definitions.get(name) as Definition;
    const { include } = baseQueryOf(one);
    const rows = await models.delegate(one.model).findMany({ include, orderBy: { id: "asc" } });
    return rows.map(createTransform(one, definitions));
  }

  it("shows every type as the API does", async () => {
    await addSale();

    const data = dataOf(await present(base, "sales"));

    expect(data).to.deep.equal(await answers(base, "sales"));
    expect(data[0]).to.include({
      big: "9007199254740993",
      amount: "1234567890123456.7800",
      photo: "AP8Q",
      sold_at: "2026-03-28T14:30:00.124+00:00",
      nothing: null,
    });
  });

  // Includes and transforms, each of which must give the API's answer.
  const cases: Readonly<Record<string, readonly [name: string, Partial<Definition>]>> = {
    "a relation to one": ["sales", { baseQuery: { include: { shop: true } }, code: asIs }],
    "a relation by a date": ["parties", { baseQuery: { include: { host: true } }, code: asIs }],
    "two levels": [
      "sales",
      { baseQuery: { include: { shop: { include: { licences: true } } } }, code: asIs },
    ],
    "a relation with a filter that leaves nothing": [
      "sales",
      { baseQuery: { include: { shop: { where: { name: "South" } } } }, code: asIs },
    ],
    "a relation with chosen fields, and not the one that links": [
      "sales",
      { baseQuery: { include: { shop: { select: { name: true } } } }, code: asIs },
    ],
    "a relation without the field that links": [
      "sales",
      { baseQuery: { include: { shop: { omit: { id: true, code: true } } } }, code: asIs },
    ],
    "a relation that is switched off": ["sales", { baseQuery: { include: { shop: false } }, code: asIs }],
    "paths of the mapping file": [
      "sales",
      {
        baseQuery: { include: { shop: { include: { licences: true } } } },
        transform: {
          kind: "object",
          entries: [
            ["name", { kind: "path", path: ["shop", "name"] }],
            [
              "nested",
              { kind: "object", entries: [["n", { kind: "path", path: ["shop", "licences", "number"] }]] },
            ],
            ["shop", { kind: "path", path: ["shop"] }],
          ],
        },
      },
    ],
  };
  for (const [what, [name, overrides]] of Object.entries(cases)) {
    it(`shows ${what} as the API does`, async () => {
      await database.pool.query(
        "INSERT INTO licences (number, shop_id) VALUES (7, 1); DELETE FROM svc.events",
      );
      if (name === "sales") await addSale();
      else await database.pool.query("INSERT INTO parties (opening) VALUES ('2026-01-01T08:00:00.456Z')");
      const definitions = withChange(name, overrides);

      const data = dataOf(await present(definitions, name));

      expect(data).to.have.length(1);
      expect(data).to.deep.equal(await answers(definitions, name));
    });
  }

  describe("of a resource that others refer to", () => {
    for (const [what, include] of [
      ["many records, sorted and cut for each", { sales: { orderBy: { id: "desc" }, take: 2 } }],
      ["many records that a filter leaves", { sales: { where: { state: "open" } } }],
      ["the one that can be there, or null", { licences: true }],
      ["nobody's records when its own field is null", { visits: true }],
    ] as const) {
      it(`shows ${what}, without Prisma`, async () => {
        await addSale("FROM generate_series(1, 3)");
        await database.pool.query(
          "INSERT INTO licences (number, shop_id) VALUES (7, 1); INSERT INTO visits (shop_code) VALUES ('n'), (null)",
        );
        await database.pool.query("DELETE FROM svc.events; UPDATE shops SET name = name || '!'");
        const definitions = withChange("shops", { baseQuery: { include }, code: asIs });

        const data = dataOf(await present(definitions, "shops"));

        expect(asked).to.deep.equal([]);
        expect(data).to.have.length(2);
        expect(data).to.deep.equal(await answers(definitions, "shops"));
      });
    }
  });

  it("shows the record at that time, with its current relations", async () => {
    await addSale();
    await database.pool.query(
      "UPDATE sales SET state = 'open'; UPDATE shops SET name = 'Moved' WHERE id = 1",
    );
    const definitions = withChange("sales", {
      baseQuery: { include: { shop: true } },
      code: { transform: ({ state, shop }) => ({ state, shop: (shop as Row | null)?.["name"] ?? null }) },
      triggers: ["on_create"],
    });

    const [create, update] = dataOf(await present(definitions, "sales"));

    expect([create, update]).to.deep.equal([
      { state: "paid", shop: "Moved" },
      { state: "open", shop: "Moved" },
    ]);
  });

  it("shows null for a deleted relation, and a deleted record itself", async () => {
    await addSale();
    await database.pool.query("DELETE FROM shops WHERE id = 1");
    const definitions = withChange("sales", {
      baseQuery: { include: { shop: true } },
      code: { transform: ({ id, shop }) => ({ id, shop }) },
    });

    const ofSales = (await captured()).filter(({ resource }) => resource === "sales");
    const presented = answersOf(await presenterOf(definitions)("sales", ofSales));

    expect(ofSales.map(({ trigger }) => trigger)).to.deep.equal(["on_create", "on_delete"]);
    expect(dataOf(presented)).to.deep.equal([
      { id: 1, shop: null },
      { id: 1, shop: null },
    ]);
  });

  it("answers in the order of the events", async () => {
    await addSale("FROM generate_series(1, 2)");
    await database.pool.query("UPDATE sales SET state = 'open' WHERE id = 2");
    await database.pool.query("UPDATE sales SET state = 'open' WHERE id = 1");
    const definitions = withChange("sales", { code: { transform: ({ id }) => ({ id }) } });

    expect(dataOf(await present(definitions, "sales"))).to.deep.equal([1, 2, 2, 1].map((id) => ({ id })));
  });

  it("calls the code module for its base query each time, like the API", async () => {
    let name = "South";
    const definitions = withChange("sales", {
      code: { ...asIs, baseQuery: () => ({ include: { shop: { where: { name } } } }) },
    });
    const presenter = presenterOf(definitions);
    await addSale();
    const events = (await captured()).filter(({ resource }) => resource === "sales");
    const [first] = dataOf(answersOf(await presenter("sales", events)));

    name = "North";

    expect(first).to.have.property("shop", null);
    expect(dataOf(answersOf(await presenter("sales", events)))).to.deep.equal(
      await answers(definitions, "sales"),
    );
  });

  describe("a fault of one resource", () => {
    for (const [what, code, kind, reason] of [
      [
        "a transform that throws",
        {
          transform() {
            throw new Error("no price");
          },
        },
        "each",
        /^transform of the resource sales failed: no price$/,
      ],
      [
        "a base query that throws",
        {
          baseQuery() {
            throw new Error("no scope");
          },
        },
        "none",
        /^baseQuery of the resource sales failed: no scope$/,
      ],
      [
        "a base query that Prisma refuses",
        { ...asIs, baseQuery: () => ({ include: { shop: { where: { nowhere: 1 } } } }) },
        "none",
        /nowhere/,
      ],
    ] as const) {
      it(`is separate, and has a reason: ${what}`, async () => {
        await addSale();
        await database.pool.query("UPDATE shops SET name = 'a' WHERE id = 1");
        const definitions = withChange("sales", { code });
        const presenter = presenterOf(definitions);
        const events = await captured();
        const of = (name: string): readonly OutboxEvent[] =>
          events.filter(({ resource }) => resource === name);

        const ofSales = await presenter("sales", of("sales"));
        const [shop] = answersOf(await presenter("shops", of("shops")));

        expect(ofSales.kind).to.equal(kind);
        expect(ofSales).to.not.have.property("isPassing", true);
        expect(dataOf(answersOf(ofSales))[0]).to.match(reason);
        expect(shop).to.have.nested.property("data.name", "a");
      });
    }

    it("refuses a snapshot that cannot be read, and no other of the resource", async () => {
      await addSale("FROM generate_series(1, 2)");
      await database.pool.query(
        `UPDATE svc.events SET snapshot = snapshot || '{"big": "many"}' WHERE record_id = '1'`,
      );

      const presented = await present(base, "sales");

      expect(presented.map(({ kind }) => kind)).to.deep.equal(["refused", "presented"]);
    });

    it("refuses events of a resource that left the mapping files", async () => {
      await addSale();

      expect(dataOf(await present(new Map(), "sales"))).to.deep.equal([
        "The resource sales is not in the mapping files.",
      ]);
    });
  });

  it("reports a passing fault when the database is down: then no event is faulty", async () => {
    await addSale();
    const events = (await captured()).filter(({ resource }) => resource === "sales");
    const own = await openDatabase({ url: created.url, poolSize: 1, isEmbedded: false });
    await own.close();
    const definitions = withChange("sales", { baseQuery: { include: { shop: true } }, code: asIs });

    const outcome = await presenterOf(definitions, own)("sales", events);

    expect(outcome).to.include({ kind: "none", isPassing: true });
  });
});
