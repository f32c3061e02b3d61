import { mkdir, mkdtemp, readdir, rm, stat, utimes } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { DbNull, JsonNull } from "@prisma/client/runtime/client";
import { expect } from "chai";
import { Pool } from "pg";
import { type Database, openDatabase } from "../../src/db/client.ts";
import { type EmbeddedDatabase, openEmbedded } from "../../src/db/embedded.ts";
import { type Delegate, type ModelsClient, openModelsClient } from "../../src/db/models-client.ts";
import { OperatorError } from "../../src/errors.ts";
import { createLog } from "../../src/log.ts";
import { prismaSchemaOf } from "../../src/resources/models.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { definition, definitionsOf, field, keyField } from "../support/definitions.ts";

const log = createLog({ level: "silent" });
const limitMs = 60_000;

/** A table that somebody else made, with types that the service itself would not choose. */
const foreignTables = `
  CREATE TYPE mood AS ENUM ('sad', 'ok');
  CREATE TABLE readings (
    id serial PRIMARY KEY, mood mood NOT NULL DEFAULT 'ok', moods mood[] NOT NULL DEFAULT '{}',
    plain timestamp, zoned timestamptz, day date, token uuid, payload jsonb, amount numeric, bytes bytea,
    code varchar(5), small smallint, big bigint, tags text[] NOT NULL DEFAULT '{}');
  CREATE TABLE notes (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), reading_id int REFERENCES readings(id), "the text" text)`;

const schemaText = prismaSchemaOf(
  definitionsOf(
    definition({
      name: "readings",
      model: "Reading",
      isManaged: false,
      fields: [
        keyField(),
        field("mood", "Enum", { values: ["sad", "ok"], default: { kind: "literal", value: "ok" } }),
        field("moods", "Enum", { values: ["sad", "ok"], isList: true }),
        ...(["plain", "zoned", "day"] as const).map((name) => field(name, "DateTime", { isOptional: true })),
        field("token", "Uuid", { isOptional: true }),
        field("payload", "Json", { isOptional: true }),
        field("amount", "Decimal", { isOptional: true }),
        field("bytes", "Bytes", { isOptional: true }),
        field("code", "String", { isOptional: true }),
        field("small", "Int", { isOptional: true }),
        field("big", "BigInt", { isOptional: true }),
        field("tags", "String", { isList: true }),
      ],
    }),
    definition({
      name: "notes",
      model: "Note",
      isManaged: false,
      fields: [
        keyField("id", { type: "Uuid", default: { kind: "uuid" } }),
        field("reading_id", "Int", {
          isOptional: true,
          references: { resource: "readings", field: "id", as: "reading", onDelete: "restrict" },
        }),
        field("text", "String", { column: "the text", isOptional: true }),
      ],
    }),
  ),
);

for (const kind of ["PostgreSQL", "the embedded database"] as const) {
  describe(`openModelsClient on ${kind}`, function () {
    this.timeout(limitMs);
    let folder: string;
    let created: TestDatabase | undefined;
    let embedded: EmbeddedDatabase | undefined;
    let url: string;
    let database: Database;
    let models: ModelsClient;
    let readings: Delegate;
    let notes: Delegate;

    before(async () => {
      folder = await mkdtemp(path.join(tmpdir(), "svc-models-"));
      if (kind === "PostgreSQL") created = await createTestDatabase();
      else embedded = await openEmbedded({ dataDir: folder, log });
      url = created?.url ?? embedded?.url ?? "";
      const isEmbedded = embedded !== undefined;
      database = await openDatabase({ url, poolSize: 3, isEmbedded, log });
      await database.pool.query(foreignTables);
      models = await openModelsClient({ schemaText, dataDir: folder, pool: database.pool, isEmbedded, log });
      readings = models.delegate("Reading");
      notes = models.delegate("Note");
    });

    after(async () => {
      await models.close();
      await database.close();
      await embedded?.close();
      await created?.drop();
      await rm(folder, { recursive: true, force: true });
    });

    it("reads, filters and writes a column of an enum type as a string", async () => {
      const { id } = await readings.create({ data: { mood: "sad" } });

      expect(await readings.findMany({ where: { id, mood: { in: ["sad"] } } })).to.have.length(1);
      expect(await readings.findMany({ where: { id, mood: "ok" } })).to.have.length(0);
      expect(await readings.update({ where: { id }, data: { mood: "ok" } })).to.include({ mood: "ok" });
    });

    it("reads and writes a list of an enum type", async () => {
      const listed = await readings.create({ data: { moods: ["sad", "ok"], tags: ['a "b"', "c,d"] } });

      expect(listed).to.deep.include({ moods: ["sad", "ok"], tags: ['a "b"', "c,d"] });
      expect(await readings.create({ data: {} })).to.deep.include({ moods: [], tags: [] });
    });

    it("looks at a type that it has not seen on the connection of the transaction that reads it", async () => {
      const only = await openDatabase({ url, poolSize: 1, isEmbedded: embedded !== undefined, log });

      const moods = await only.prisma.$transaction(
        (tx) => tx.$queryRaw`SELECT ARRAY['sad', 'ok']::public.mood[] AS moods`,
      );

      expect(moods).to.deep.equal([{ moods: ["sad", "ok"] }]);
      await only.close();
    });

    it("reads, filters and writes timestamp, timestamptz and date columns in UTC", async () => {
      const moment = new Date("2026-03-28T23:30:00.123Z");
      const { id } = await readings.create({ data: { plain: moment, zoned: moment, day: moment } });

      expect(await readings.findFirst({ where: { id, plain: moment, zoned: moment } })).to.deep.include({
        plain: moment,
        zoned: moment,
        day: new Date("2026-03-28T00:00:00.000Z"),
      });
      const { rows } = await database.pool.query(
        "SELECT plain::text, zoned::text, day::text FROM readings WHERE id = $1",
        [id],
      );
      expect(rows).to.deep.equal([
        { plain: "2026-03-28 23:30:00.123", zoned: "2026-03-28 23:30:00.123+00", day: "2026-03-28" },
      ]);
    });

    it("keeps every digit, byte and JSON value", async () => {
      const written = {
        token: "0b1c6f7e-5e0e-4c0c-9a4e-0f8d3a3c1d11",
        payload: { a: [1, null, "ü"] },
        bytes: new Uint8Array([0, 255]),
        big: 9007199254740993n,
        small: -1,
        code: "abc",
      };

      const read = await readings.create({ data: { ...written, amount: "12345678901234567890.123456789" } });

      expect(read).to.deep.include(written);
      expect(String(read["amount"])).to.equal("12345678901234567890.123456789");
    });

    it("tells NULL from the null of JSON by Prisma's own values", async () => {
      const { id: missing } = await readings.create({ data: { payload: DbNull } });
      const { id: present } = await readings.create({ data: { payload: JsonNull } });

      const { rows } = await database.pool.query(
        "SELECT payload IS NULL AS missing FROM readings WHERE id IN ($1, $2) ORDER BY id",
        [missing, present],
      );
      expect(rows).to.deep.equal([{ missing: true }, { missing: false }]);
    });

    it("follows relations both ways and columns by other names", async () => {
      const { id } = await readings.create({ data: { code: "rel" } });
      const note = await notes.create({ data: { reading_id: id, text: "hi" }, include: { reading: true } });

      expect(note).to.deep.include({ text: "hi" });
      expect(note["reading"]).to.include({ id, code: "rel" });
      const found = await readings.findFirst({ where: { id }, include: { notes: true } });
      expect(found?.["notes"]).to.have.length(1);
    });

    it("counts, deletes, and gives null for what is not there", async () => {
      const { id } = await readings.create({ data: { code: "gone" } });

      await readings.delete({ where: { id } });

      expect(await readings.count({ where: { id } })).to.equal(0);
      expect(await readings.findFirst({ where: { id } })).to.equal(null);
    });

    it("throws for a model that the schema does not have", () => {
      expect(() => models.delegate("Nothing")).to.throw("no model Nothing");
    });

    it("leaves the pool open when it closes", async () => {
      const other = await openModelsClient({
        schemaText,
        dataDir: folder,
        pool: database.pool,
        isEmbedded: embedded !== undefined,
        log,
      });
      await other.delegate("Note").count();

      await other.close();

      expect((await database.pool.query("SELECT 1")).rowCount).to.equal(1);
      expect(database.pool.listenerCount("error")).to.be.lessThan(4);
    });
  });
}

describe("openModelsClient's generated folder", function () {
  this.timeout(limitMs);
  const pool = new Pool({ connectionString: "postgresql://nobody@127.0.0.1:1/nowhere" });
  let folder: string;
  let root: string;

  beforeEach(async () => {
    folder = await mkdtemp(path.join(tmpdir(), "svc-models-"));
    root = path.join(folder, "generated");
  });

  afterEach(() => rm(folder, { recursive: true, force: true }));

  it("is made once, by one or by many at once, and leaves no draft", async () => {
    await Promise.all([open(schemaOf("one")), open(schemaOf("one"))]);
    const [name = ""] = await readdir(root);
    const { ino } = await stat(path.join(root, name));

    await open(schemaOf("one"));

    expect(await readdir(root)).to.deep.equal([name]);
    expect((await stat(path.join(root, name))).ino).to.equal(ino);
  });

  it("is another one for another schema; the five used last are kept", async () => {
    for (let index = 0; index < 6; index += 1) {
      const old = path.join(root, `old${index}`);
      await mkdir(old, { recursive: true });
      await utimes(old, 1000 + index, 1000 + index);
    }
    const abandoned = path.join(root, "abandoned.1.tmp");
    await mkdir(abandoned);
    await utimes(abandoned, 1000, 1000);

    await open(schemaOf("one"));

    const names = await readdir(root);
    expect(names).to.have.length(5);
    expect(names).to.include.members(["old2", "old3", "old4", "old5"]);
  });

  it("is not made for a schema that Prisma refuses, which is the operator's fault to read", async () => {
    const failure: unknown = await open(schemaOf("one").replace("name String", "name Strin")).catch(
      (error: unknown) => error,
    );

    expect(failure).to.be.instanceOf(OperatorError);
    expect(failure)
      .to.have.property("message")
      .that.includes("Strin")
      .and.includes("neither a built-in type");
    expect(await readdir(root)).to.deep.equal([]);
  });

  it("holds every kind of field, default and relation that a mapping file can state", async () => {
    const text = prismaSchemaOf(
      definitionsOf(
        definition({
          name: "things",
          fields: [
            keyField("thing_key", { type: "BigInt" }),
            field("s", "String", { length: 5, default: { kind: "literal", value: 'a "b" \\ \n\t é' } }),
            field("list", "Int", { isList: true, default: { kind: "literal", value: [1, -2] } }),
            field("f", "Float", { default: { kind: "literal", value: -1.5 } }),
            field("n", "Decimal", { precision: 12, scale: 2, default: { kind: "literal", value: "0.10" } }),
            field("big", "BigInt", { default: { kind: "literal", value: 12 } }),
            field("on", "Boolean", { default: { kind: "literal", value: true } }),
            field("at", "DateTime", { default: { kind: "literal", value: "2026-01-01T00:00:00Z" } }),
            field("j", "Json", { default: { kind: "literal", value: { a: ['"'] } } }),
            field("raw", "Bytes", { default: { kind: "literal", value: "AP8=" } }),
            field("u", "Uuid", { isUnique: true, default: { kind: "uuid" } }),
            field("code", "String", { default: { kind: "uuid" }, column: 'odd "name"' }),
            field("e", "Enum", { values: ["a"], default: { kind: "literal", value: "a" } }),
            field("made", "DateTime", { default: { kind: "now" }, isIndexed: true }),
            field("changed", "DateTime", { isUpdatedAt: true }),
            field("parent_key", "BigInt", {
              isOptional: true,
              references: { resource: "things", field: "thing_key", as: "parent", onDelete: "setNull" },
            }),
          ],
        }),
      ),
    );

    const models = await open(text);

    expect(models.delegate("Things")).to.have.property("findMany");
  });

  it("may lie below an installation, as the data dir of a clone does", async () => {
    const data = path.resolve("data");
    await mkdir(data, { recursive: true });
    const below = await mkdtemp(path.join(data, "svc-models-"));

    try {
      const models = await open(schemaOf("one"), below);

      expect(models.delegate("One")).to.have.property("findMany");
    } finally {
      await rm(below, { recursive: true });
    }
  });

  function open(text: string, dataDir = folder): Promise<ModelsClient> {
    return openModelsClient({ schemaText: text, dataDir, pool, isEmbedded: false, log });
  }
});

function schemaOf(name: string): string {
  return prismaSchemaOf(definitionsOf(definition({ name, fields: [field("name", "String")] })));
}
