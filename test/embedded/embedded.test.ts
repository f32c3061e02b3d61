import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, mkdtemp, rm, stat, symlink, writeFile } from "node:fs/promises";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect } from "chai";
import { Client, Pool } from "pg";
import { type EmbeddedDatabase, openEmbedded } from "../../src/embedded/embedded.ts";
import { OperatorError } from "../../src/kit/errors.ts";
import { createLog } from "../../src/telemetry/log.ts";
import { fillDataDir } from "../support/embedded.ts";
import { createMemoryLog } from "../support/http.ts";
import { until } from "../support/wait.ts";

const log = createLog({ level: "silent" });
const limitMs = 60_000;

describe("openEmbedded", function () {
  this.timeout(limitMs);
  let folder: string;
  let embedded: EmbeddedDatabase;
  let pool: Pool;
  const first = createMemoryLog();

  before(async () => {
    folder = await mkdtemp(path.join(tmpdir(), "svc-embedded-"));
    embedded = await openEmbedded({ dataDir: folder, log: first.log });
    pool = new Pool({ connectionString: embedded.url, max: 20 });
    await pool.query("CREATE TABLE counter (value int NOT NULL); INSERT INTO counter VALUES (0)");
  });

  after(async () => {
    await pool.end();
    await embedded.close();
    await rm(folder, { recursive: true, force: true });
  });

  it("warns that it creates a database in a folder without one, which may be the wrong folder", () => {
    const warnings = first.lines.filter(({ level }) => level === 40);

    expect(warnings.map(({ dataDir }) => dataDir)).to.deep.equal([folder]);
    expect(String(warnings[0]?.["msg"])).to.include("DATABASE_URL or SVC_DATA_DIR");
  });

  it("keeps 20 concurrent transactions apart: no read-modify-write is lost", async () => {
    await Promise.all(Array.from({ length: 20 }, increment));

    expect(await valueOf(pool, "SELECT value FROM counter")).to.equal(20);
  });

  it("answers each connection its own statement, also when the parameters take many reads", async () => {
    const answers = await Promise.all(
      Array.from({ length: 40 }, async (_, index) => {
        const { rows } = await pool.query<{ own: number; length: number }>(
          `SELECT ${index} AS own, length($1) AS length`,
          ["x".repeat(300_000 + index)],
        );
        return rows[0];
      }),
    );

    expect(answers).to.deep.equal(
      Array.from({ length: 40 }, (_, index) => ({ own: index, length: 300_000 + index })),
    );
  });

  it("lets a statement wait while another connection is in a transaction", async () => {
    const busy = await pool.connect();
    await busy.query("BEGIN");
    let isAnswered = false;
    const waiting = pool.query("SELECT 1").then(() => (isAnswered = true));

    await busy.query("SELECT 2");
    await busy.query("SELECT 3");
    expect(isAnswered).to.equal(false);
    await busy.query("COMMIT");
    busy.release();

    expect(await waiting).to.equal(true);
  });

  it("rolls back and continues when a connection is cut inside a transaction", async () => {
    await pool.query("CREATE TABLE cut_inside (n int)");
    const client = await connect();
    await client.query("BEGIN");
    await client.query("INSERT INTO cut_inside VALUES (1)");

    socketOf(client).destroy();

    expect(await valueOf(pool, "SELECT count(*)::int AS value FROM cut_inside")).to.equal(0);
  });

  it("continues when a connection is cut at any moment of the start of a transaction", async () => {
    for (let delay = 0; delay < 10; delay += 1) {
      const client = await connect();
      client.query("BEGIN").catch(() => undefined);
      await new Promise((resolve) => setTimeout(resolve, delay / 5));
      socketOf(client).destroy();

      expect(await valueOf(pool, "SELECT 1 AS value")).to.equal(1);
    }
  });

  it("continues after a connection that sent Parse and Flush was cut before its Sync", async () => {
    const client = await connect();
    const answered = once(socketOf(client), "data");
    socketOf(client).write(Buffer.concat([message("P", "\0SELECT 1\0\0\0"), message("H", "")]));
    await answered;

    socketOf(client).destroy();

    expect(await valueOf(pool, "SELECT 2 AS value")).to.equal(2);
  });

  it("answers errors of the extended protocol and serves the connection and others afterwards", async () => {
    const client = await connect();

    for (const [text, values] of [
      ["SELECT nonsense FROM nowhere WHERE a = $1", [1]],
      ["SELECT $1::int", ["not a number"]],
      ["SELECT 1 / $1::int", [0]],
    ] as const) {
      const failure: unknown = await client.query(text, [...values]).catch((error: unknown) => error);
      expect(failure).to.be.instanceOf(Error);
      expect(await valueOf(client, "SELECT $1::int AS value", [7])).to.equal(7);
      expect(await valueOf(pool, "SELECT $1::int AS value", [8])).to.equal(8);
    }
    await client.end();
  });

  it("holds a failed transaction until its ROLLBACK", async () => {
    const client = await connect();
    await client.query("BEGIN");
    await client.query("SELECT 1 / 0").catch(() => undefined);
    const other = pool.query("SELECT 1");

    const refused: unknown = await client.query("SELECT 1").catch((error: unknown) => error);
    await client.query("ROLLBACK");

    expect(refused).to.have.property("code", "25P02");
    expect((await other).rowCount).to.equal(1);
    await client.end();
  });

  it("gives a second opener the running database, and its close leaves it running", async () => {
    const second = await openEmbedded({ dataDir: folder, log });
    expect(second).to.include({ url: embedded.url, isOwner: false });

    await second.close();

    expect(await valueOf(pool, "SELECT 3 AS value")).to.equal(3);
  });

  it("runs in UTC and has pg_trgm", async () => {
    expect(await valueOf(pool, "SELECT current_setting('TimeZone') AS value")).to.equal("UTC");
    await pool.query("CREATE EXTENSION pg_trgm");
    expect(await valueOf(pool, "SELECT similarity('abc', 'abc')::int AS value")).to.equal(1);
  });

  it("keeps its files and its socket from other users", async () => {
    for (const name of ["postgres", "socket"])
      expect((await stat(path.join(folder, name))).mode & 0o077, name).to.equal(0);
  });

  async function increment(): Promise<void> {
    const client = await pool.connect();
    try {
      await client.query("BEGIN");
      const { rows } = await client.query<{ value: number }>("SELECT value FROM counter");
      await new Promise((resolve) => setImmediate(resolve));
      await client.query("UPDATE counter SET value = $1", [(rows[0]?.value ?? 0) + 1]);
      await client.query("COMMIT");
    } finally {
      client.release();
    }
  }

  async function connect(): Promise<Client> {
    const client = new Client({ connectionString: embedded.url });
    client.on("error", () => undefined);
    await client.connect();
    return client;
  }
});

describe("openEmbedded across processes", function () {
  this.timeout(limitMs);
  let folder: string;
  const children: ChildProcess[] = [];

  beforeEach(async () => {
    folder = await mkdtemp(path.join(tmpdir(), "svc-embedded-"));
  });

  afterEach(async () => {
    for (const child of children.splice(0)) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      child.kill("SIGKILL");
      await once(child, "exit");
    }
    await rm(folder, { recursive: true, force: true });
  });

  it("has one owner when two processes start at once, after a first start that was killed half-way, and both reach the same data", async () => {
    await mkdir(path.join(folder, "postgres/base"), { recursive: true });
    await writeFile(path.join(folder, "postgres/PG_VERSION"), "18\n");
    await writeFile(path.join(folder, "postgres.unfinished"), "");

    const [one, other] = await Promise.all([startChild(folder), startChild(folder)]);

    expect([one.isOwner, other.isOwner]).to.have.members([true, false]);
    expect(one.url).to.equal(other.url);
    await run(one.url, "CREATE TABLE shared (n int)");
    await run(other.url, "INSERT INTO shared VALUES (1)");
  });

  it("has every committed row and none of an open transaction after SIGKILL of the owner", async () => {
    await fillDataDir(folder);
    const { child, url } = await startChild(folder);
    const client = new Client({ connectionString: url });
    client.on("error", () => undefined);
    await client.connect();
    await client.query("CREATE TABLE kept (n int PRIMARY KEY)");
    for (let n = 1; n <= 50; n += 1) await client.query("INSERT INTO kept VALUES ($1)", [n]);
    await client.query("BEGIN");
    await client.query("INSERT INTO kept VALUES (51)");

    child.kill("SIGKILL");
    await once(child, "exit");
    const again = await openEmbedded({ dataDir: folder, log });

    const reader = new Client({ connectionString: again.url });
    await reader.connect();
    expect(again.isOwner).to.equal(true);
    expect(await valueOf(reader, "SELECT count(*)::int AS value FROM kept")).to.equal(50);
    await reader.end();
    await again.close();
  });

  it("opens what an earlier run closed", async () => {
    await fillDataDir(folder);
    const first = await openEmbedded({ dataDir: folder, log });
    await run(first.url, "CREATE TABLE kept (n int)");
    await first.close();

    const second = await openEmbedded({ dataDir: folder, log });

    await run(second.url, "INSERT INTO kept VALUES (1)");
    await second.close();
  });

  it("uses a short path for the socket when the data dir's is too long", async () => {
    const deep = path.join(folder, "d".repeat(90));
    await fillDataDir(deep);

    const opened = await openEmbedded({ dataDir: deep, log });

    expect(opened.url).not.to.include("ddd");
    await run(opened.url, "SELECT 1");
    await opened.close();
  });

  it("waits for the end of another owner when it must own the database", async () => {
    await fillDataDir(folder);
    const { child } = await startChild(folder);
    const { log: memory, lines } = createMemoryLog();

    const opening = openEmbedded({ dataDir: folder, log: memory, mustOwn: true });
    await until(() => lines.some(({ msg }) => /another process runs/.test(String(msg))), {
      what: "the warning",
    });
    child.kill("SIGKILL");
    const opened = await opening;

    expect(opened.isOwner).to.equal(true);
    await opened.close();
  });

  for (const [fact, options] of [
    ["when its time is up", { openTimeoutMs: 300 }],
    ["when it is told to stop", { signal: AbortSignal.abort() }],
  ] as const) {
    it(`names the other owner ${fact}`, async () => {
      await fillDataDir(folder);
      const { child } = await startChild(folder);

      const failure: unknown = await openEmbedded({ dataDir: folder, log, mustOwn: true, ...options }).catch(
        (error: unknown) => error,
      );

      expect(failure).to.be.instanceOf(OperatorError);
      expect(failure)
        .to.have.property("message")
        .that.includes(`is run by process ${child.pid}, svc or svc-admin`);
    });
  }

  it("does not use the database from which its data dir was copied", async () => {
    const [original, copy] = [path.join(folder, "original"), path.join(folder, "copy")];
    await fillDataDir(original);
    await startChild(original);
    await fillDataDir(copy);
    await cp(path.join(original, "postgres.lock"), path.join(copy, "postgres.lock"));

    const failure: unknown = await openEmbedded({ dataDir: copy, log, openTimeoutMs: 300 }).catch(
      (error: unknown) => error,
    );

    expect(failure).to.be.instanceOf(OperatorError);
    expect(failure)
      .to.have.property("message")
      .that.includes(`remove ${path.join(copy, "postgres.lock")}`);
    await rm(path.join(copy, "postgres.lock"));
    const opened = await openEmbedded({ dataDir: copy, log });
    expect(opened.isOwner).to.equal(true);
    await opened.close();
  });

  it("finds the running database by another path of its data dir", async () => {
    const [original, link] = [path.join(folder, "original"), path.join(folder, "link")];
    await fillDataDir(original);
    const { url } = await startChild(original);
    await symlink(original, link);

    expect(await openEmbedded({ dataDir: link, log })).to.include({ url, isOwner: false });
  });

  it("names the process that holds the lock when it does not answer", async () => {
    await writeFile(
      path.join(folder, "postgres.lock"),
      JSON.stringify({ pid: process.ppid, startedAt: null, note: path.join(folder, "nowhere") }),
    );

    const failure: unknown = await openEmbedded({ dataDir: folder, log, openTimeoutMs: 300 }).catch(
      (error: unknown) => error,
    );

    expect(failure).to.be.instanceOf(OperatorError);
    expect(failure).to.have.property("message").that.includes(`process ${process.ppid}`);
  });

  async function startChild(
    dataDir: string,
  ): Promise<{ child: ChildProcess; url: string; isOwner: boolean }> {
    const embeddedModule = new URL("../../src/embedded/embedded.ts", import.meta.url).href;
    const logModule = new URL("../../src/telemetry/log.ts", import.meta.url).href;
    const program = `
      import { openEmbedded } from ${JSON.stringify(embeddedModule)};
      import { createLog } from ${JSON.stringify(logModule)};
      const { url, isOwner } = await openEmbedded({ dataDir: ${JSON.stringify(dataDir)}, log: createLog({ level: "silent" }) });
      process.stdout.write(JSON.stringify({ url, isOwner }) + "\\n");
      setInterval(() => {}, 1000);`;
    const child = spawn(process.execPath, ["--import", "tsx", "--input-type=module", "-e", program], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    children.push(child);
    let output = "";
    child.stdout.on("data", (data: Buffer) => (output += data.toString()));
    const line = await until(() => output.split("\n").find((text) => text.startsWith("{")), {
      timeoutMs: limitMs,
      what: "the child's database",
    });
    return { child, ...(JSON.parse(line) as { url: string; isOwner: boolean }) };
  }
});

async function run(url: string, sql: string): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  await client.query(sql);
  await client.end();
}

async function valueOf(db: Client | Pool, sql: string, values: readonly unknown[] = []): Promise<unknown> {
  const { rows } = await db.query<{ value: unknown }>(sql, [...values]);
  return rows[0]?.value;
}

function socketOf(client: Client): Socket {
  return (client as unknown as { connection: { stream: Socket } }).connection.stream;
}

function message(type: string, body: string): Buffer {
  const head = Buffer.from(`${type}\0\0\0\0`);
  head.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([head, Buffer.from(body)]);
}
