import { randomBytes } from "node:crypto";
import { expect } from "chai";
import { Client } from "pg";
import { openDatabase, waitForDatabase } from "../../src/db/client.ts";
import { createLog } from "../../src/telemetry/log.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";

const log = createLog({ level: "silent" });

describe("a connection, as a role of the server", () => {
  let created: TestDatabase;
  let client: Client;
  let role: string;

  beforeEach(async () => {
    created = await createTestDatabase();
    client = new Client({ connectionString: created.url });
    await client.connect();
    role = `svc_test_${randomBytes(4).toString("hex")}`;
    await client.query(`CREATE ROLE ${role} LOGIN PASSWORD '50%off'`);
  });

  afterEach(async () => {
    await client.query(`DROP ROLE ${role}`);
    await client.end();
    await created.drop();
  });

  /** Returns "open", or the message of the refusal. */
  const tried = (password: string): Promise<string> => {
    const url = created.url.replace(/\/\/[^@]*@/, `//${role}:${password}@`);
    return waitForDatabase({ url, log, signal: AbortSignal.abort() }).then(() => "open", String);
  };

  it("accepts a % in the password like pg, and shows how to write it where pg cannot read it", async () => {
    const answers = [await tried("50%off"), await tried("50%25off"), await tried("50%f0")];

    const refusal =
      "OperatorError: The database URL cannot be used: URI malformed; a % in its user or password is written as %25";
    expect(answers).to.deep.equal(["open", "open", refusal]);
  });

  it("opens as a local session, whose triggers fire as those of an origin", async () => {
    await client.query(`ALTER ROLE ${role} SET session_replication_role = local`);
    const url = created.url.replace(/\/\/[^@]*@/, `//${role}:50%25off@`);
    const database = await openDatabase({ url, poolSize: 1, isEmbedded: false, log });

    const answer = await database.pool.query("SELECT").then(() => "open", String);

    await database.close();
    expect(answer).to.equal("open");
  });

  it("gives the remedy when its triggers would not fire and it may not change that", async () => {
    await client.query(`ALTER ROLE ${role} SET session_replication_role = replica`);
    const url = created.url.replace(/\/\/[^@]*@/, `//${role}:50%25off@`);
    const database = await openDatabase({ url, poolSize: 1, isEmbedded: false, log });

    const answer = await database.pool.query("SELECT").then(() => "open", String);

    await client.query(`ALTER ROLE ${role} SET session_replication_role = origin`);
    const next = await database.pool.query("SELECT").then(() => "open", String);
    await database.close();
    expect([answer, next]).to.deep.equal([
      "OperatorError: The role of database.url (DATABASE_URL) has session_replication_role = replica, with which its changes make no events, and may not change it. As an administrator: ALTER ROLE <role> SET session_replication_role = origin",
      "open",
    ]);
  });
});
