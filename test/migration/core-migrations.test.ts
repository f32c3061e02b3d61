import { expect } from "chai";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import {
  type CoreMigration,
  coreSteps,
  inMigrationTransaction,
  loadCoreMigrations,
  pendingMigrations,
  runSteps,
} from "../../src/migration/core-migrations.ts";
import { compareSchema } from "../../src/db/prisma-internals/schema-engine.ts";
import { OperatorError } from "../../src/kit/errors.ts";
import { stateSql } from "../support/delivery-states.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { openNewEmbedded } from "../support/embedded.ts";

const [first, second]: readonly CoreMigration[] = ["0001_core", "0002_more"].map((name) => ({
  name,
  sql: "SELECT 1",
  checksum: `of ${name}`,
}));
const known = [first, second] as readonly CoreMigration[];

describe("loadCoreMigrations", () => {
  it("finds the migrations of this version in their order, with a SHA-256 each", async () => {
    const migrations = await loadCoreMigrations();

    expect(migrations[0]?.name).to.equal("0001_core");
    expect(migrations.map(({ name }) => name)).to.deep.equal(migrations.map(({ name }) => name).toSorted());
    for (const { checksum } of migrations) expect(checksum).to.match(/^[0-9a-f]{64}$/);
  });
});

describe("pendingMigrations", () => {
  it("returns those that were not applied", () => {
    expect(pendingMigrations(known, {})).to.deep.equal(known);
    expect(pendingMigrations(known, { "0001_core": "of 0001_core" })).to.deep.equal([second]);
  });

  it("refuses a database that has a migration of a later version", () => {
    expect(() => pendingMigrations(known, { "0003_next": "?" })).to.throw(OperatorError, /newer.*0003_next/);
  });

  it("refuses a migration whose text changed after it was applied", () => {
    expect(() => pendingMigrations(known, { "0001_core": "of another text" })).to.throw(
      OperatorError,
      /0001_core was changed/,
    );
  });
});

describe("the core migrations", () => {
  let database: TestDatabase;

  before(async () => {
    database = await createTestDatabase();
  });

  after(async () => {
    await database.drop();
  });

  it("make the tables of prisma/schema.prisma", async () => {
    const schemaText = await readFile(new URL("../../prisma/schema.prisma", import.meta.url), "utf8");

    const change = await inMigrationTransaction({
      url: database.url,
      isReadOnly: false,
      async work(client) {
        await runSteps(client, coreSteps(await loadCoreMigrations()));
        return compareSchema({ client, schemaText, externalTables: [], externalEnums: [] });
      },
    });

    expect(change).to.deep.equal({ statements: [], warnings: [], impossible: [] });
  });

  describe("with a client", () => {
    let client: Client;

    const codeOf = (sql: string, values: readonly unknown[] = []): Promise<unknown> =>
      client.query(sql, [...values]).then(
        () => "done",
        (error: { constraint?: string; message: string }) => error.constraint ?? error.message,
      );

    before(async () => {
      client = new Client({ connectionString: database.url, application_name: "a writer" });
      await client.connect();
    });

    after(() => client.end());

    it("have the words of the contract, and one automatic delivery per event and subscription", async () => {
      const event =
        "INSERT INTO svc.events (resource, trigger, record_id, snapshot) VALUES ('notes', $1, '1', '{}')";
      const delivery = `
        INSERT INTO svc.deliveries (uuid, event_id, event_uuid, subscription_id, user_id, resource, root_delivery_id, trigger_kind,
          status, max_attempts, url, last_error)
        SELECT gen_random_uuid(), id, uuid, 1, 1, 'notes', 1, $1, $2, 1, 'http://localhost', ${stateSql("$2").lastError} FROM svc.events`;

      expect(await codeOf(event, ["on_read"])).to.equal("events_trigger_check");
      expect(await codeOf(event, ["on_create"])).to.equal("done");
      expect(await codeOf(delivery, ["automatic", "lost"])).to.equal("deliveries_status_check");
      expect(await codeOf(delivery, ["odd", "pending"])).to.equal("deliveries_trigger_kind_check");
      expect(await codeOf(delivery, ["automatic", "pending"])).to.equal("done");
      expect(await codeOf(delivery, ["automatic", "pending"])).to.equal("deliveries_event_key");
      expect(await codeOf(delivery, ["manual", "failed"])).to.equal("done");
      expect(await codeOf(delivery, ["manual", "cancelled"])).to.equal("done");
      const { rows } = await client.query("SELECT problem FROM svc.deliveries ORDER BY id");
      expect(rows.map(({ problem }) => problem as unknown)).to.deep.equal([null, "failed", "cancelled"]);
    });

    it("allow one attempt for each number, and one place in each queue", async () => {
      for (const [text, constraint] of [
        [
          "INSERT INTO svc.attempts (delivery_id, number, started_at, duration_ms) VALUES (1, 1, now(), 1)",
          "attempts_pkey",
        ],
        [
          "INSERT INTO svc.delivery_queue (delivery_id, subscription_id, user_id) VALUES (1, 1, 1)",
          "delivery_queue_pkey",
        ],
        ["INSERT INTO svc.event_data (event_id, data) VALUES (1, '{}')", "event_data_pkey"],
      ] as const) {
        expect(await codeOf(text)).to.equal("done");
        expect(await codeOf(text)).to.equal(constraint);
      }
    });

    it("put each event into the outbox with its owner, its writer and its top-level transaction", async () => {
      await client.query("TRUNCATE svc.events, svc.outbox");
      await client.query("BEGIN; SAVEPOINT a");
      await client.query(
        `INSERT INTO svc.events (resource, trigger, record_id, owner_id, snapshot) VALUES ('notes', 'on_create', '1', '7', '{"a": 1}')`,
      );
      const { rows } = await client.query(
        `SELECT entry.*, event.id, pg_current_xact_id()::text AS current FROM svc.outbox AS entry CROSS JOIN svc.events AS event`,
      );
      await client.query("COMMIT");

      const [{ id, current, bytes, ...entry }, ...more] = rows as [Record<string, unknown>];
      expect(more).to.deep.equal([]);
      expect(entry).to.deep.equal({
        event_id: id,
        transaction_id: current,
        resource: "notes",
        owner_id: "7",
        writer: "a writer",
      });
      expect(bytes).to.be.above(8);
    });

    it("compress the texts of events and answers with LZ4", async () => {
      const { rows: columns } = await client.query<{ name: string; compression: string }>(
        `SELECT attrelid::regclass || '.' || attname AS name, attcompression AS compression FROM pg_attribute
         WHERE (attrelid, attname) IN (('svc.events'::regclass, 'snapshot'), ('svc.events'::regclass, 'previous'), ('svc.event_data'::regclass, 'data'),
           ('svc.event_data'::regclass, 'previous'), ('svc.idempotency_keys'::regclass, 'body'))`,
      );
      expect(columns).to.have.lengthOf(5);
      for (const { name, compression } of columns) expect(compression, name).to.equal("l");
    });

    it("give each event a UUID that begins with its id", async () => {
      await client.query("TRUNCATE svc.events, svc.outbox");
      const { rows } = await client.query<{ id: string; uuid: string }>(
        `INSERT INTO svc.events (resource, trigger, record_id, snapshot)
         SELECT 'notes', 'on_create', '1', '{}' FROM generate_series(1, 2) RETURNING id, uuid`,
      );

      expect(
        rows.map(({ uuid }) => String(Number.parseInt(uuid.replaceAll("-", "").slice(0, 12), 16))),
      ).to.deep.equal(rows.map(({ id }) => id));
      expect(rows[0]?.uuid).to.match(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
      expect(rows[0]?.uuid.slice(14)).to.not.equal(rows[1]?.uuid.slice(14));
    });
  });

  it("move waiting rows of the previous version into the queues", async () => {
    const old = await createTestDatabase();
    const client = new Client({ connectionString: old.url });
    await client.connect();
    try {
      const migrations = await loadCoreMigrations();
      const at = migrations.findIndex(({ name }) => name === "0004_queues");
      await runSteps(client, coreSteps(migrations.slice(0, at)));
      const data = '{"text":"é ,\\"data\\":","data":[1.50],"timestamp":"x"}';
      await client.query(`
        INSERT INTO svc.events (resource, trigger, record_id, snapshot, published_at, fanned_out_at) VALUES
          ('notes', 'on_create', 'done', '{}', now(), now()), ('notes', 'on_create', 'fresh', '{}', NULL, NULL),
          ('papers', 'on_create', 'published', '{}', now(), NULL)`);
      const add = `
        INSERT INTO svc.deliveries (uuid, event_id, event_uuid, subscription_id, user_id, resource, root_delivery_id, trigger_kind,
          status, max_attempts, url, body, next_attempt_at)
        SELECT gen_random_uuid(), id, uuid, $2, 7, 'notes', 1, 'automatic', $1, 3, '',
          convert_to('{"event":"on_create","resource":"notes","event_id":"' || uuid || '","delivery_id":"' || gen_random_uuid()
            || '","data":' || $3 || ',"timestamp":"2026-03-28T14:30:00.123456Z"}', 'UTF8'), $4::timestamptz
        FROM svc.events WHERE record_id = 'done'`;
      const dueAt = new Date("2026-03-28T14:30:00Z");
      await client.query(add, ["retrying", 1, data, dueAt]);
      await client.query(add, ["pending", 2, data, null]);
      await client.query(add, ["delivered", 3, data, null]);

      await runSteps(client, coreSteps(migrations.slice(at)));

      const rowsOf = async (sql: string): Promise<unknown> => (await client.query(sql)).rows;
      expect(
        await rowsOf("SELECT record_id, writer FROM svc.outbox JOIN svc.events ON id = event_id ORDER BY id"),
      ).to.deep.equal([
        { record_id: "fresh", writer: "" },
        { record_id: "published", writer: "" },
      ]);
      expect(await rowsOf("SELECT data FROM svc.event_data")).to.deep.equal([{ data }]);
      expect(
        await rowsOf("SELECT subscription_id, user_id, due_at FROM svc.delivery_queue ORDER BY delivery_id"),
      ).to.deep.equal([
        { subscription_id: 1, user_id: 7, due_at: dueAt },
        { subscription_id: 2, user_id: 7, due_at: null },
      ]);
    } finally {
      await client.end();
      await old.drop();
    }
  });
});

async function createTable(client: Client): Promise<void> {
  await client.query("CREATE TABLE made (id int)");
}

describe("inMigrationTransaction", () => {
  let database: TestDatabase;

  before(async () => {
    database = await createTestDatabase();
  });

  after(async () => {
    await database.drop();
  });

  it("runs one at a time", async () => {
    let running = 0;
    let most = 0;
    const run = (): Promise<void> =>
      inMigrationTransaction({
        url: database.url,
        isReadOnly: false,
        async work(client) {
          most = Math.max(most, ++running);
          await client.query("SELECT pg_sleep(0.05)");
          running--;
        },
      });

    await Promise.all([run(), run(), run()]);

    expect(most).to.equal(1);
  });

  it("runs without the limits of the role for requests", async () => {
    const client = new Client({ connectionString: database.url });
    await client.connect();
    await client.query(
      "CREATE ROLE svc_test_migrator LOGIN SUPERUSER PASSWORD 'x'; ALTER ROLE svc_test_migrator SET statement_timeout = 500",
    );
    try {
      const url = new URL(database.url);
      url.username = "svc_test_migrator";
      url.password = "x";

      const answer = await inMigrationTransaction({
        url: url.href,
        isReadOnly: false,
        work: async (migrator) =>
          (await migrator.query("SELECT pg_sleep(0.75), current_user AS name")).rows[0],
      });

      expect(answer).to.include({ name: "svc_test_migrator" });
    } finally {
      await client.query("DROP ROLE svc_test_migrator");
      await client.end();
    }
  });

  it("has the server end it when its machine is lost", async () => {
    const limits = await inMigrationTransaction({
      url: database.url,
      isReadOnly: false,
      work: async (client) =>
        (
          await client.query(
            "SELECT current_setting('tcp_keepalives_idle') AS idle, current_setting('tcp_user_timeout') AS answer",
          )
        ).rows[0],
    });

    expect(limits).to.deep.equal({ idle: "60", answer: "120000" });
  });

  it("runs without the limit of a whole transaction, which later versions of PostgreSQL have", async () => {
    const dataDir = await mkdtemp(join(tmpdir(), "svc-limits-"));
    const embedded = await openNewEmbedded(dataDir);
    const client = new Client({ connectionString: embedded.url });
    try {
      await client.connect();
      // All clients of the embedded database share one session.
      await client.query("SET transaction_timeout = '1h'");

      const limit = await inMigrationTransaction({
        url: embedded.url,
        isReadOnly: false,
        work: async (migrator) => (await migrator.query("SHOW transaction_timeout")).rows[0],
      });

      expect(limit).to.deep.equal({ transaction_timeout: "0" });
    } finally {
      await client.end();
      await embedded.close();
      await rm(dataDir, { recursive: true, force: true });
    }
  });

  it("changes nothing when it is read only, or when the work throws", async () => {
    const refused = await inMigrationTransaction({
      url: database.url,
      isReadOnly: true,
      work: createTable,
    }).catch(String);
    await inMigrationTransaction({
      url: database.url,
      isReadOnly: false,
      async work(client) {
        await createTable(client);
        throw new Error("thrown");
      },
    }).catch(String);

    const table = await inMigrationTransaction({
      url: database.url,
      isReadOnly: true,
      work: async (client) => (await client.query("SELECT to_regclass('made') AS name")).rows[0],
    });
    expect(refused).to.match(/read-only/);
    expect(table).to.deep.equal({ name: null });
  });

  it("names the step that failed, in runSteps", async () => {
    const failed = inMigrationTransaction({
      url: database.url,
      isReadOnly: false,
      work: (client) => runSteps(client, [{ title: "notes: something", sql: "SELECT 1/0" }]),
    });

    expect(await failed.catch(String)).to.equal(
      "OperatorError: The migration failed and changed nothing. Step: notes: something. PostgreSQL says: division by zero",
    );
  });
});
