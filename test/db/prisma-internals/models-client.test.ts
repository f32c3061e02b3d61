import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { DbNull, JsonNull } from "@prisma/client/runtime/client";
import { expect } from "chai";
import { type Database, openDatabase } from "../../../src/db/client.ts";
import type { Delegate, ModelsClient } from "../../../src/db/models-client.ts";
import { openModelsClient } from "../../../src/db/prisma-internals/models-client.ts";
import { createLog } from "../../../src/telemetry/log.ts";
import { prismaSchemaOf } from "../../../src/mapping/models.ts";
import { definition, definitionsOf, field, keyField } from "../../support/definitions.ts";
import { databaseKinds, openModelsScene, type ModelsScene } from "../../support/models-scene.ts";
import { until } from "../../support/wait.ts";
import { createCoreClient } from "../../support/core-client.ts";

const log = createLog({ level: "silent" });
const limitMs = 60_000;

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

/** A table made by others, with types that the service itself would not choose. */
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

for (const kind of databaseKinds) {
  describe(`openModelsClient on ${kind}`, function () {
    this.timeout(limitMs);
    let scene: ModelsScene;
    let database: Database;
    let models: ModelsClient;
    let readings: Delegate;
    let notes: Delegate;

    before(async () => {
      scene = await openModelsScene(kind, { tables: foreignTables, schemaText });
      ({ database, models } = scene);
      readings = models.delegate("Reading");
      notes = models.delegate("Note");
    });

    after(() => scene.close());

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

    it("looks up a new type on the connection of the transaction that reads it", async () => {
      const only = await openDatabase({ url: scene.url, poolSize: 1, isEmbedded: scene.isEmbedded, log });

      const moods = await createCoreClient(only.pool, scene).$transaction(
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

    it("distinguishes NULL from JSON's null by Prisma's own values", async () => {
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

    it("counts, deletes, and returns null for a missing record", async () => {
      const { id } = await readings.create({ data: { code: "gone" } });

      await readings.delete({ where: { id } });

      expect(await readings.count({ where: { id } })).to.equal(0);
      expect(await readings.findFirst({ where: { id } })).to.equal(null);
    });

    it("throws for a model that the schema does not have", () => {
      expect(() => models.delegate("Nothing")).to.throw("no model Nothing");
    });

    it("leaves nothing in memory once it is closed, because a reload opens another one", async () => {
      const delegate = await useOnce();

      await until(
        () => {
          collectGarbage();
          return delegate.deref() === undefined;
        },
        { what: "the memory of a closed client" },
      );
    });

    it("leaves the pool open when it closes", async () => {
      const other = await openModelsClient({
        schemaText,
        pool: database.pool,
        isEmbedded: scene.isEmbedded,
      });
      await other.delegate("Note").count();

      await other.close();

      expect((await database.pool.query("SELECT 1")).rowCount).to.equal(1);
      expect(database.pool.listenerCount("error")).to.be.lessThan(4);
    });

    it("queries the new type of a changed column, over the earlier connections", async () => {
      const { id } = await readings.create({ data: { small: 1 } });
      await readings.findFirst({ where: { small: 1 } });
      await database.pool.query("ALTER TABLE readings ALTER small TYPE bigint");
      const other = await openModelsClient({
        schemaText: schemaText.replace(/(\bsmall +)Int/, "$1BigInt"),
        pool: database.pool,
        isEmbedded: scene.isEmbedded,
      });
      try {
        const found = await other.delegate("Reading").findMany({ where: { small: { lt: 3_000_000_000n } } });
        await other.delegate("Reading").findFirst({ where: { small: 3_000_000_000n } });

        expect(found.map((row) => row["id"])).to.include(id);
      } finally {
        await other.close();
        await database.pool.query("ALTER TABLE readings ALTER small TYPE smallint");
      }
    });

    /** A function of its own, whose variables are freed when it returns. */
    async function useOnce(): Promise<WeakRef<Delegate>> {
      const other = await openModelsClient({
        schemaText,
        pool: database.pool,
        isEmbedded: scene.isEmbedded,
      });
      await other.delegate("Note").count();
      await other.close();
      return new WeakRef(other.delegate("Note"));
    }
  });
}
