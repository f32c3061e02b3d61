import { expect } from "chai";
import { type Database, openDatabase } from "../../src/db/client.ts";
import type { Delegate } from "../../src/db/models-client.ts";
import { databaseFaultOf, isTimeLimitOver } from "../../src/db/database-fault.ts";
import { prismaSchemaOf } from "../../src/mapping/models.ts";
import { createTestDatabase } from "../support/database.ts";
import { definition, definitionsOf, field } from "../support/definitions.ts";
import { databaseKinds, openModelsScene, type ModelsScene } from "../support/models-scene.ts";
import { createCoreClient } from "../support/core-client.ts";
import type { PrismaClient } from "../support/generated/client.ts";

const tables = `
  CREATE TABLE parents (
    id serial PRIMARY KEY, email varchar(10) NOT NULL, tenant int NOT NULL DEFAULT 1, "Odd, name" text,
    small smallint NOT NULL DEFAULT 1, amount numeric(5, 2), kind text CHECK (kind IN ('a', 'b')), token uuid,
    CONSTRAINT one_email_a_tenant UNIQUE (tenant, email), CONSTRAINT odd UNIQUE ("Odd, name"));
  CREATE UNIQUE INDEX ON parents (lower(kind));
  CREATE TABLE children (id serial PRIMARY KEY, parent_id int NOT NULL REFERENCES parents(id) ON DELETE RESTRICT);
  CREATE TABLE cousins (id serial PRIMARY KEY, parent_id int NOT NULL REFERENCES parents(id));
  CREATE TABLE stays (during int4range, CONSTRAINT one_stay_at_a_time EXCLUDE USING gist (during WITH &&));
  INSERT INTO stays VALUES ('[1,4)');
  INSERT INTO parents (id, email, "Odd, name", kind) VALUES (1000, 'a', 'x', 'a'), (1001, 'z', 'z', NULL);
  INSERT INTO children (parent_id) VALUES (1000);
  INSERT INTO cousins (parent_id) VALUES (1001)`;

const schemaText = prismaSchemaOf(
  definitionsOf(
    definition({
      name: "parents",
      model: "Parent",
      isManaged: false,
      fields: [
        field("email", "String"),
        field("tenant", "Int", { default: { kind: "literal", value: 1 } }),
        field("odd", "String", { column: "Odd, name", isOptional: true }),
        // Optional here and NOT NULL in the table, as when the mapping file is behind the table.
        field("small", "Int", { isOptional: true, default: { kind: "literal", value: 1 } }),
        field("amount", "Decimal", { isOptional: true }),
        field("kind", "String", { isOptional: true }),
        field("token", "Uuid", { isOptional: true }),
      ],
    }),
    definition({ name: "children", model: "Child", isManaged: false, fields: [field("parent_id", "Int")] }),
  ),
);

for (const kind of databaseKinds) {
  describe(`databaseFaultOf on ${kind}`, function () {
    this.timeout(60_000);
    let scene: ModelsScene;
    let database: Database;
    let prisma: PrismaClient;
    let parents: Delegate;
    let children: Delegate;

    before(async () => {
      scene = await openModelsScene(kind, { tables, schemaText });
      ({ database } = scene);
      prisma = createCoreClient(database.pool, scene);
      parents = scene.models.delegate("Parent");
      children = scene.models.delegate("Child");
    });

    after(() => scene.close());

    const cases: readonly (readonly [string, () => Promise<unknown>, object])[] = [
      ["names the columns of a unique constraint", () => create({ email: "a" }), unique("tenant", "email")],
      ["names a column with a comma in it", () => create({ email: "b", odd: "x" }), unique("Odd, name")],
      ["names a key that is taken", () => create({ email: "b", id: 1000 }), unique("id")],
      [
        "gives the text of a unique expression",
        () => create({ email: "b", kind: "a" }),
        unique("lower(kind)"),
      ],
      [
        "names the column of a missing reference",
        () => children.create({ data: { parent_id: 99 } }),
        { kind: "foreign_key", field: "parent_id" },
      ],
      [
        "knows a delete that ON DELETE RESTRICT forbids",
        () => parents.delete({ where: { id: 1000 } }),
        { kind: "foreign_key", field: "id" },
      ],
      [
        "knows a delete that a reference without an action forbids",
        () => parents.delete({ where: { id: 1001 } }),
        { kind: "foreign_key", field: "id" },
      ],
      [
        "names the column that may not be null",
        () => create({ email: "b", small: null }),
        { kind: "not_null", field: "small" },
      ],
      [
        "names a check constraint",
        () => create({ email: "b", kind: "zzz" }),
        { kind: "check", constraint: "parents_kind_check" },
      ],
      [
        "names a constraint that excludes, and its columns",
        () => database.pool.query("INSERT INTO stays VALUES ('[3,5)')"),
        { kind: "excluded", fields: ["during"], constraint: "one_stay_at_a_time" },
      ],
      ["knows a string that is too long", () => create({ email: "b".repeat(11) }), badValue()],
      ["knows an integer out of the column's range", () => create({ email: "b", small: 99_999 }), badValue()],
      [
        "knows an integer out of range in a filter",
        () => parents.findFirst({ where: { id: 99_999_999_999 } }),
        badValue(),
      ],
      ["knows a decimal with too many digits", () => create({ email: "b", amount: "12345.1" }), badValue()],
      ["knows a decimal that is none", () => create({ email: "b", amount: "abc" }), badValue()],
      ["knows a uuid that is none", () => parents.findFirst({ where: { token: "abc" } }), badValue()],
      ["knows a NUL in a string", () => create({ email: "b\0c" }), badValue()],
      [
        "knows an update of what is not there",
        () => parents.update({ where: { id: 5 }, data: { tenant: 1 } }),
        { kind: "not_found" },
      ],
      [
        "knows a delete of what is not there",
        () => parents.delete({ where: { id: 5 } }),
        { kind: "not_found" },
      ],
      [
        "reads raw SQL through Prisma",
        () => prisma.$executeRaw`INSERT INTO public.parents (email) VALUES ('a')`,
        unique("tenant", "email"),
      ],
      [
        "reads errors inside a Prisma transaction",
        () =>
          prisma.$transaction(async (tx) => {
            await tx.$executeRaw`INSERT INTO public.parents (email) VALUES ('a')`;
          }),
        unique("tenant", "email"),
      ],
      [
        "takes a server that only lets read for one that is away",
        () =>
          prisma.$transaction(async (tx) => {
            await tx.$executeRaw`SET TRANSACTION READ ONLY`;
            await tx.$executeRaw`INSERT INTO public.parents (tenant, email) VALUES (9, 'z')`;
          }),
        { kind: "unavailable" },
      ],
      [
        "reads errors of pg itself",
        () => database.pool.query("INSERT INTO parents (email) VALUES ('a')"),
        unique("tenant", "email"),
      ],
      [
        "calls a missing column other",
        () => database.pool.query("SELECT nonsense FROM parents"),
        { kind: "other" },
      ],
      ["calls a missing argument other: it is the code's fault", () => create({}), { kind: "other" }],
      [
        "calls a transaction that took too long unavailable",
        () =>
          prisma.$transaction(
            async (tx) => {
              await new Promise((resolve) => setTimeout(resolve, 100));
              await tx.$queryRaw`SELECT 1`;
            },
            { timeout: 20 },
          ),
        { kind: "unavailable" },
      ],
    ];
    for (const [fact, act, fault] of cases) {
      it(fact, async () => {
        expect(databaseFaultOf(await failureOf(act()))).to.deep.equal(fault);
      });
    }

    function create(data: Record<string, unknown>): Promise<unknown> {
      return parents.create({ data });
    }
  });
}

describe("databaseFaultOf", () => {
  it("calls a server that is down unavailable, on every path", async () => {
    const away = await openDatabase({
      url: "postgresql://nobody@127.0.0.1:1/nowhere",
      poolSize: 1,
      isEmbedded: false,
    });

    for (const act of [
      () => createCoreClient(away.pool).user.findMany(),
      () => createCoreClient(away.pool).$transaction((tx) => tx.user.findMany()),
      () => away.pool.query("SELECT 1"),
    ])
      expect(databaseFaultOf(await failureOf(act()))).to.deep.equal({ kind: "unavailable" });
    await away.close();
  });

  it("calls a cut connection, a statement timeout and a full pool unavailable", async () => {
    const created = await createTestDatabase();
    const database = await openDatabase({ url: created.url, poolSize: 1, isEmbedded: false });
    const prisma = createCoreClient(database.pool);

    for (const act of [
      () => database.pool.query("SELECT pg_terminate_backend(pg_backend_pid())"),
      () => prisma.$executeRaw`SELECT pg_terminate_backend(pg_backend_pid())`,
      () =>
        prisma.$transaction(async (tx) => {
          await tx.$executeRaw`SELECT pg_terminate_backend(pg_backend_pid())`;
        }),
      () =>
        prisma.$transaction(async (tx) => {
          await tx.$executeRaw`SET LOCAL statement_timeout = '10ms'`;
          await tx.$executeRaw`SELECT pg_sleep(5)`;
        }),
    ])
      expect(databaseFaultOf(await failureOf(act()))).to.deep.equal({ kind: "unavailable" });

    await database.close();
    await created.drop();
  });

  it("recognises a statement that reached its time limit, of pg and of Prisma, and no other", async () => {
    const created = await createTestDatabase();
    const database = await openDatabase({ url: created.url, poolSize: 1, isEmbedded: false });
    const prisma = createCoreClient(database.pool);
    const limited = (text: string): Promise<unknown> =>
      failureOf(
        prisma.$transaction(async (tx) => {
          await tx.$executeRaw`SET LOCAL statement_timeout = '10ms'`;
          await tx.$executeRawUnsafe(text);
        }),
      );

    await database.pool.query("SET statement_timeout = '10ms'");
    const errors = [
      await failureOf(database.pool.query("SELECT pg_sleep(5)")),
      await limited("SELECT pg_sleep(5)"),
      await failureOf(database.pool.query("SELECT 1 / 0")),
      await limited("SELECT 1 / 0"),
      undefined,
    ];

    expect(errors.map(isTimeLimitOver)).to.deep.equal([true, true, false, false, false]);
    await database.close();
    await created.drop();
  });

  it("calls a write conflict unavailable", async () => {
    expect(databaseFaultOf({ code: "40P01", severity: "ERROR" })).to.deep.equal({ kind: "unavailable" });
    expect(databaseFaultOf({ code: "P2034" })).to.deep.equal({ kind: "unavailable" });
  });

  it("calls a long transaction that was cut, and a refused connection, unavailable", async () => {
    expect(databaseFaultOf({ code: "25P04", severity: "FATAL" })).to.deep.equal({ kind: "unavailable" });
    const created = await createTestDatabase();
    await created.drop();
    const gone = await openDatabase({ url: created.url, poolSize: 1, isEmbedded: false });

    expect(databaseFaultOf(await failureOf(gone.pool.query("SELECT 1")))).to.deep.equal({
      kind: "unavailable",
    });
    await gone.close();
  });

  it("reads the columns from the server's detail in any language", () => {
    const detail = 'Schlüssel »(tenant, "Odd, name")=(1, a)« existiert bereits.';

    expect(databaseFaultOf({ code: "23505", detail })).to.deep.equal(unique("tenant", "Odd, name"));
  });

  it("treats EPIPE as a lost connection, not as an SQLSTATE", () => {
    expect(databaseFaultOf(Object.assign(new Error("write EPIPE"), { code: "EPIPE" }))).to.deep.equal({
      kind: "unavailable",
    });
  });

  it("calls everything else other", () => {
    for (const thrown of [undefined, null, "text", 1, {}, new Error("x"), new TypeError("y")])
      expect(databaseFaultOf(thrown)).to.deep.equal({ kind: "other" });
  });
});

function unique(...fields: string[]): object {
  return { kind: "unique", fields };
}

function badValue(): object {
  return { kind: "bad_value" };
}

async function failureOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => {
      throw new Error("It did not fail");
    },
    (error: unknown) => error,
  );
}
