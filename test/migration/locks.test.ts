import { setTimeout } from "node:timers/promises";
import { expect } from "chai";
import { Client } from "pg";
import { pino } from "pino";
import {
  coreSteps,
  inMigrationSession,
  inMigrationTransaction,
  loadCoreMigrations,
  runSteps,
} from "../../src/migration/core-migrations.ts";
import { lockTables } from "../../src/migration/lock-tables.ts";
import { OperatorError } from "../../src/kit/errors.ts";
import { applyMigration } from "../../src/app/apply-migration.ts";
import { createLog } from "../../src/telemetry/log.ts";
import type { Definition, Definitions, DeleteAction } from "../../src/mapping/definition.ts";
import { openScene, type Scene } from "../support/migration-scene.ts";
import { definition, definitionsOf, field } from "../support/definitions.ts";
import { customers, orders, shop, withFields } from "../support/shop.ts";
import { until } from "../support/wait.ts";

const notes = definition({ name: "notes", fields: [] });

/** A shop whose orders refer to customers by a code. */
const shopBy = (length: number, onDelete: DeleteAction = "restrict"): Definitions => {
  const references = { resource: "customers", field: "code", as: "customer", onDelete };
  return definitionsOf(
    withFields(customers, [field("code", "String", { isUnique: true })]),
    withFields(orders, [field("customer_code", "String", { length, isOptional: true, references })]),
  );
};
const withoutReference = definitionsOf(shopBy(20).get("customers") as Definition, withFields(orders, []));

describe("a migration beside transactions of the version before", () => {
  let scene: Scene;
  let writer: Client;

  beforeEach(async () => {
    scene = await openScene();
    writer = new Client({ connectionString: scene.url });
    await writer.connect();
  });

  afterEach(async () => {
    await writer.end();
    await scene.close();
  });

  const isWaiting = async (): Promise<boolean> => {
    const rows = await scene.rows(
      "SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'svc migrate' AND wait_event_type = 'Lock' AND wait_event = 'relation'",
    );
    return rows.length > 0;
  };
  const untilWaiting = (): Promise<unknown> =>
    until(isWaiting, { what: "the migration to wait for a table", timeoutMs: 20_000 });

  it("does not deadlock with one that goes from a table to another of the core migrations", async () => {
    const migrations = await loadCoreMigrations();
    const at = migrations.findIndex(({ name }) => name === "0023_subscription_changes");
    await scene.client.query("DROP SCHEMA svc CASCADE");
    await runSteps(scene.client, coreSteps(migrations.slice(0, at)));
    await writer.query("BEGIN");
    await writer.query("SELECT FROM svc.delivery_queue");

    const migrated = scene.apply(definitionsOf());
    await untilWaiting();
    const { command } = await writer.query("UPDATE svc.subscriptions SET is_active = true");
    await writer.query("COMMIT");

    expect(command).to.equal("UPDATE");
    expect(await migrated).to.equal("done");
  });

  for (const [what, next] of [
    ["a table of a resource", notes],
    ["a table that a resource leaves", definition({ ...notes, table: "papers" })],
  ] as const)
    it(`does not deadlock with one that goes from ${what} to those of the service`, async () => {
      await scene.migrate(definitionsOf(notes));
      // The state after a migration whose captures have changed, with a core migration to come.
      await scene.client.query("UPDATE svc.installed_resources SET hash = 'another'");
      await scene.client.query("DELETE FROM svc.migrations WHERE name = '0027_disabled_users'");
      await scene.client.query("DROP INDEX svc.users_disabled_idx");
      await writer.query("BEGIN");
      await writer.query("SELECT FROM notes");

      const migrated = scene.apply(definitionsOf(next));
      await untilWaiting();
      const { command } = await writer.query("UPDATE svc.users SET name = name");
      await writer.query("COMMIT");

      expect(command).to.equal("UPDATE");
      expect(await migrated).to.equal("done");
    });

  for (const [what, next] of [
    ["dropped, and made again in another way", shopBy(20, "cascade")],
    ["dropped with its column", withoutReference],
    ["made again for another type of its column", shopBy(40)],
  ] as const) {
    it(`waits for the table at the other end before it locks any, for a foreign key that is ${what}`, async () => {
      await scene.migrate(shopBy(20));
      await writer.query("BEGIN");
      await writer.query("SELECT FROM customers");

      const migrated = scene.apply(next, true);
      await untilWaiting();
      const { command } = await writer.query("UPDATE orders SET customer_code = NULL");
      await writer.query("COMMIT");

      expect(command).to.equal("UPDATE");
      expect(await migrated).to.equal("done");
    });
  }

  it("waits for writers, and not for readers, of a table to which a new foreign key leads", async () => {
    await scene.migrate(withoutReference);
    await writer.query("BEGIN");
    await writer.query("SELECT FROM customers");
    expect(await scene.apply(shopBy(20))).to.equal("done");
    await writer.query("COMMIT");
    await scene.migrate(withoutReference, true);
    await writer.query("BEGIN");
    await writer.query("UPDATE customers SET code = code");

    const migrated = scene.apply(shopBy(20));
    await untilWaiting();
    const { command } = await writer.query("INSERT INTO orders DEFAULT VALUES");
    await writer.query("ROLLBACK");

    expect(command).to.equal("INSERT");
    expect(await migrated).to.equal("done");
  });

  it("reads the rows again once it has locked the tables, so that none is lost in between", async () => {
    await scene.migrate(shop);
    await writer.query("BEGIN");
    await writer.query("INSERT INTO customers (name) VALUES ('Ada')");

    const migrated = scene.apply(definitionsOf(withFields(customers, []), orders));
    await untilWaiting();
    await writer.query("COMMIT");

    expect(await migrated).to.match(/would lose data.*`name` on the `customers` table.* 1 non-null/s);
    expect(await scene.rows("SELECT name FROM customers")).to.deep.equal([{ name: "Ada" }]);
  });

  for (const [what, sql, shows] of [
    [
      "a long reader",
      "SET application_name = 'pg_dump'; BEGIN; SELECT FROM notes, svc.users",
      /\n {2}- pid PID, application "pg_dump", role "\w+", in a transaction since 20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ, now idle in transaction: notes, svc\.users\n.*pg_terminate_backend/,
    ],
    [
      "a session without a name",
      "SET application_name = ''; BEGIN; SELECT FROM notes",
      /pid PID, application "client backend", .*: notes\n/,
    ],
  ] as const) {
    it(`gives up after its tries, names ${what} that locks a table, and has locked none`, async () => {
      await scene.migrate(definitionsOf(notes));
      await writer.query(sql);
      const { rows } = await writer.query<{ pid: string }>("SELECT pg_backend_pid()::text AS pid");
      await scene.client.query("BEGIN");

      const message = await lockTables(scene.client, ["svc.users", "notes"], { patience: 0 }).then(
        () => "locked",
        (error: unknown) => (error instanceof OperatorError ? error.message : String(error)),
      );

      expect(message.replace(`pid ${rows[0]?.pid},`, "pid PID,")).to.match(shows);
      const locked = await scene.rows(
        "SELECT FROM pg_locks WHERE pid = pg_backend_pid() AND mode = 'AccessExclusiveLock'",
      );
      expect(locked).to.deep.equal([]);
      await writer.query("COMMIT");
      await lockTables(scene.client, ["svc.users", "notes"], { patience: 0 });
      await scene.client.query("COMMIT");
    });
  }

  describe("of a table that its role may not lock", () => {
    const insert = "INSERT INTO customers (name) VALUES ('Ada')";
    let url: URL;

    beforeEach(async () => {
      url = new URL(scene.url);
      // The role makes the service's tables itself.
      await scene.client.query(`
        DROP SCHEMA svc CASCADE;
        CREATE TABLE customers (id serial PRIMARY KEY, name text NOT NULL);
        CREATE ROLE svc_test_watcher LOGIN PASSWORD 'x';
        GRANT CREATE ON DATABASE ${url.pathname.slice(1)} TO svc_test_watcher;
        GRANT SELECT, TRIGGER ON customers TO svc_test_watcher;
        SET lock_timeout = '2s'`);
      [url.username, url.password] = ["svc_test_watcher", "x"];
    });

    afterEach(async () => {
      await scene.client.query("DROP OWNED BY svc_test_watcher CASCADE; DROP ROLE svc_test_watcher");
    });

    const migrate = (): Promise<string> => {
      const definitions = definitionsOf({ ...customers, isManaged: false });
      const log = createLog({ level: "silent" });
      const migrated = applyMigration({ url: url.href, definitions, allowDestructive: false, log });
      return migrated.then(() => "done", String);
    };
    const expectWaiting = async (): Promise<void> => {
      const result = migrate();
      const waiting =
        "SELECT FROM pg_stat_activity WHERE usename = 'svc_test_watcher' AND (wait_event = 'relation' OR query LIKE '%virtualtransaction AS id%')";
      await until(async () => (await scene.rows(waiting)).length > 0, {
        what: "the migration to wait for the table",
        timeoutMs: 20_000,
      });

      const inserted = await scene.client.query(insert).then(({ command }) => command, String);
      await writer.query("COMMIT");
      const done = await result;

      expect([inserted, done]).to.deep.equal(["INSERT", "done"]);
    };

    it("lets others write to it while a long transaction has locked it", async () => {
      await writer.query("BEGIN");
      await writer.query(insert);

      await expectWaiting();
    });

    it("waits for readers only where it drops a trigger", async () => {
      await writer.query("BEGIN");
      await writer.query("SELECT FROM customers FOR SHARE");
      expect(await migrate()).to.equal("done");
      await writer.query("COMMIT");
      await scene.client.query("UPDATE svc.installed_resources SET hash = 'another'");
      await writer.query("BEGIN");
      await writer.query("SELECT FROM customers");

      await expectWaiting();
    });
  });

  it("names the transaction for which it waits", async () => {
    const { url } = scene;
    const lines: string[] = [];
    const log = pino({ level: "warn" }, { write: (line: string) => void lines.push(line) });
    let second: Promise<void> | undefined;

    const pid = await inMigrationTransaction({
      url,
      isReadOnly: false,
      async work(client) {
        second = inMigrationTransaction({ url, isReadOnly: false, log, work: async () => undefined });
        await until(() => lines.length > 0, { what: "the second to say that it waits" });
        return (await client.query<{ pid: number }>("SELECT pg_backend_pid() AS pid")).rows[0]?.pid;
      },
    });
    await second;

    expect(lines).to.have.length(1);
    const { msg, holders } = JSON.parse(lines[0] ?? "");
    expect(msg).to.equal("waits for another migration to end");
    expect(holders).to.have.length(1);
    expect(holders[0]).to.match(
      new RegExp(`^pid ${pid}, application "svc migrate", role "\\w+", in a transaction since \\S+Z, now `),
    );
  });

  it("has the server end a statement when its process is lost", async () => {
    const statement = "SELECT pg_sleep(60)";
    const isRunning = async (): Promise<boolean> =>
      (await scene.rows(`SELECT FROM pg_stat_activity WHERE query = '${statement}'`)).length > 0;

    await inMigrationTransaction({
      url: scene.url,
      isReadOnly: false,
      async work(client) {
        const sleeping = client.query(statement).catch(() => undefined);
        await until(isRunning, { what: "the statement to run" });
        client.connection.stream.destroy();
        await sleeping;
      },
    }).catch(() => undefined);

    await until(async () => !(await isRunning()), { what: "the statement to end", timeoutMs: 15_000 });
  });

  it("has the server finish an index that is made without a transaction, when its process is lost", async () => {
    await scene.client.query("CREATE TABLE papers (id int)");
    await writer.query("BEGIN");
    await writer.query("INSERT INTO papers VALUES (1)");
    const sessions = (): Promise<readonly unknown[]> =>
      scene.rows("SELECT FROM pg_stat_activity WHERE query LIKE 'CREATE INDEX CONCURRENTLY papers%'");

    await inMigrationSession({
      url: scene.url,
      async work(client) {
        const making = client
          .query("CREATE INDEX CONCURRENTLY papers_id ON papers (id)")
          .catch(() => undefined);
        await until(async () => (await sessions()).length > 0, { what: "the index to be begun" });
        client.connection.stream.destroy();
        await making;
      },
    }).catch(() => undefined);
    // Longer than the server needs to detect it.
    await setTimeout(5_000);
    await writer.query("COMMIT");
    await until(async () => (await sessions()).length === 0, { what: "the end of the index" });

    expect(
      await scene.rows("SELECT indisvalid FROM pg_index WHERE indrelid = 'papers'::regclass"),
    ).to.deep.equal([{ indisvalid: true }]);
  });

  it("waits without a limit until autovacuum yields", async () => {
    await scene.migrate(definitionsOf(notes));
    await writer.query("BEGIN; LOCK TABLE notes IN SHARE UPDATE EXCLUSIVE MODE");
    await scene.client.query("BEGIN");

    const locked = lockTables(scene.client, ["notes"], { patience: 20_000 });
    // PostgreSQL ends an autovacuum like this: for a session that has waited for deadlock_timeout,
    // 1 s.
    const waiting = `SELECT FROM pg_locks WHERE NOT granted AND relation = 'notes'::regclass AND waitstart < clock_timestamp() - interval '1 second'`;
    await until(async () => (await writer.query(waiting)).rowCount === 1, { what: "a wait of a second" });
    await writer.query("COMMIT");

    await locked;
    await scene.client.query("COMMIT");
  });
});
