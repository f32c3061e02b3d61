import { randomBytes } from "node:crypto";
import { expect } from "chai";
import { Client } from "pg";
import { isDatabaseAway } from "../../src/app/configuration.ts";
import { prepareDatabase } from "../../src/app/prepare-database.ts";
import { createReadiness } from "../../src/app/readiness.ts";
import { openStorage } from "../../src/app/storage.ts";
import { loadConfig } from "../../src/config/load.ts";
import { compareSchema } from "../../src/db/prisma-internals/schema-engine.ts";
import { prismaSchemaOf } from "../../src/mapping/models.ts";
import { testOperator } from "../support/actors.ts";
import { definition, definitionsOf, field, keyField } from "../support/definitions.ts";
import { createMemoryLog } from "../support/http.ts";
import { openEmptyScene, type Scene } from "../support/migration-scene.ts";
import { shop } from "../support/shop.ts";
import { until } from "../support/wait.ts";

describe("prepareDatabase", () => {
  let scene: Scene;

  beforeEach(async () => {
    scene = await openEmptyScene();
  });

  afterEach(() => scene.close());

  /**
   * Ends the connection of the first statement that makes a function. A rollback does not reset its
   * sequence.
   */
  const loseOnce = `
    CREATE SEQUENCE public.tries;
    CREATE FUNCTION public.lose() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
      IF nextval('public.tries') = 1 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF;
    END $$;
    CREATE EVENT TRIGGER lose ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION public.lose()`;

  async function prepare(
    definitions = shop,
    {
      hash = "0",
      signal = new AbortController().signal,
      memory = createMemoryLog(),
      readiness = createReadiness(),
      url = scene.url,
    } = {},
  ): Promise<readonly string[]> {
    const { log, lines } = memory;
    const env = { DATABASE_URL: url, SVC_AUTO_MIGRATE: "true", SVC_SECRET_KEY: `${"k".repeat(43)}=` };
    const config = loadConfig({ env, cwd: "/", program: "all" });
    const closers: (() => Promise<void>)[] = [];
    const storage = await openStorage({ config, program: "all", log, readiness, signal, closers });
    const checked = { config, definitions, byHand: [], hash };
    try {
      await prepareDatabase({ checked, storage, actor: testOperator, readiness, signal });
      return lines.map(({ msg }) => String(msg));
    } finally {
      for (const close of closers) await close();
    }
  }

  it("continues after a connection was lost in a step", async () => {
    await scene.client.query(loseOnce);

    expect(await prepare()).to.include.members(["the database went away during the start", "migrated"]);
  });

  async function letOnlyRead(): Promise<void> {
    const database = new URL(scene.url).pathname.slice(1);
    await scene.client.query(`ALTER DATABASE "${database}" SET default_transaction_read_only = on`);
  }

  it("is not ready while the database is read-only, and migrates only when it permits writes", async () => {
    await letOnlyRead();
    const memory = createMemoryLog();
    const readiness = createReadiness();
    const signal = AbortSignal.timeout(2_500);

    const refused = prepare(shop, { signal, memory, readiness }).catch(String);
    await until(() => memory.lines.length > 0, { what: "the first try" });
    const fault = await readiness.checks.database().catch(String);

    expect(fault).to.equal("Error: the server only lets read");
    expect(await refused).to.include("read-only transaction");
    expect(memory.lines.map(({ msg }) => msg)).to.include("the database went away during the start");
  });

  it("retries once a second while the database is read-only", async () => {
    await prepare();
    await letOnlyRead();
    const memory = createMemoryLog();
    const signal = AbortSignal.timeout(2_500);

    // It has another configuration to record.
    const refused = await prepare(shop, { hash: "1", signal, memory }).catch(String);

    expect(refused).to.include("read-only transaction");
    const tries = memory.lines.filter(({ msg }) => msg === "the database went away during the start");
    expect(tries).to.have.length.within(1, 4);
  });

  it("ends for a step that the database refuses", async () => {
    await scene.client.query(
      loseOnce.replace("PERFORM pg_terminate_backend(pg_backend_pid())", "RAISE deadlock_detected"),
    );

    const refused = await prepare().catch(String);

    expect(refused).to.match(/^OperatorError: The migration failed and changed nothing/);
  });

  it("names the right that its role lacks, before a migration and after it, and the document that lists the rights", async () => {
    const role = `svc_test_${randomBytes(4).toString("hex")}`;
    await scene.client.query(`CREATE ROLE ${role} LOGIN PASSWORD 'a password'`);
    const url = new URL(scene.url);
    [url.username, url.password] = [role, "a password"];
    const refusals: string[] = [];
    try {
      refusals.push(await prepare(shop, { url: url.href }).then(String, String));
      await scene.migrate(shop);
      refusals.push(await prepare(shop, { url: url.href }).then(String, String));
    } finally {
      await scene.client.query(`DROP ROLE ${role}`);
    }

    expect(refusals[0]).to.match(
      /^OperatorError: The migration failed .* permission denied for database .*\. Migrate as the role that owns .*production\.md/,
    );
    expect(refusals[1]).to.match(
      /^OperatorError: The role of database\.url \(DATABASE_URL\) lacks a right: permission denied for schema svc\. .*production\.md/,
    );
  });

  it("ends for a step whose foreign server is down, because a retry would not help", async () => {
    const away = "RAISE EXCEPTION SQLSTATE '08001' USING MESSAGE = 'could not connect to server \"other\"'";
    await scene.client.query(loseOnce.replace("PERFORM pg_terminate_backend(pg_backend_pid())", away));

    const refused = await prepare().catch(String);

    expect(refused).to.match(/^OperatorError: The migration failed and changed nothing/);
  });

  it("shows no value of the row that prevents a migration, because the log contains its message", async () => {
    const fields = [keyField(), field("email", "String")];
    const kind = field("kind", "String", { default: { kind: "literal", value: "x" } });
    await prepare(definitionsOf(definition({ name: "guests", fields })));
    // The plan sees none of these rows.
    await scene.client.query(`
      CREATE FUNCTION add_twins() RETURNS event_trigger LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO guests (email) VALUES ('ada@example.com'), ('ada@example.com'); END $$;
      CREATE EVENT TRIGGER adding ON ddl_command_start WHEN TAG IN ('CREATE INDEX') EXECUTE FUNCTION add_twins()`);

    const unique = { name: "guests", fields: [...fields, kind], uniques: [["email", "kind"]] };
    const refused = await prepare(definitionsOf(definition(unique))).catch(String);

    expect(refused).to.match(/ PostgreSQL says: could not create unique index "guests_email_kind_key"$/);
  });

  it("treats a comparison whose connection was lost as an unavailable database", async () => {
    const client = new Client({ connectionString: scene.url });
    client.on("error", () => undefined);
    await client.connect();
    await client.query("SELECT pg_terminate_backend(pg_backend_pid())").catch(() => undefined);

    const schema = { schemaText: prismaSchemaOf(shop), externalTables: [], externalEnums: [] };
    const failure: unknown = await compareSchema({ client, ...schema }).catch((error: unknown) => error);
    await client.end();

    expect(isDatabaseAway(failure), String(failure)).to.equal(true);
  });
});
