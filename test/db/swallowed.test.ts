import { expect } from "chai";
import { type Database, openDatabase, waitForDatabase } from "../../src/db/client.ts";
import { databaseFaultOf } from "../../src/db/database-fault.ts";
import { createLog } from "../../src/telemetry/log.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { type Proxy, startProxy, through } from "../support/proxy.ts";
import { until } from "../support/wait.ts";
import { createCoreClient } from "../support/core-client.ts";

const log = createLog({ level: "silent" });
const queryTimeoutMs = 400;

async function failureOf(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => undefined,
    (error: unknown) => error,
  );
}

describe("openDatabase, when the network drops everything", () => {
  let created: TestDatabase;
  let proxy: Proxy;
  let database: Database;

  beforeEach(async () => {
    created = await createTestDatabase();
    proxy = await startProxy(created.url);
    const url = through(proxy, created.url);
    database = await openDatabase({ url, poolSize: 2, isEmbedded: false, log, queryTimeoutMs });
  });

  afterEach(async () => {
    await proxy.close();
    await database.close();
    await created.drop();
  });

  it("fails a statement without an answer as for an unavailable database, and continues with new connections", async () => {
    await Promise.all([database.pool.query("SELECT 1"), database.pool.query("SELECT 1")]);
    proxy.stall();

    const ofSql = await failureOf(database.pool.query("SELECT 2"));
    const ofPrisma = await failureOf(createCoreClient(database.pool).$queryRaw`SELECT 3`);

    expect(databaseFaultOf(ofSql)).to.deep.equal({ kind: "unavailable" });
    expect(databaseFaultOf(ofPrisma)).to.deep.equal({ kind: "unavailable" });
    await until(() => database.pool.totalCount === 0, { what: "the connections to be given up" });
    proxy.resume();
    const { rows } = await database.pool.query("SELECT 4 AS answer");
    expect(rows).to.deep.equal([{ answer: 4 }]);
  });

  it("frees the connection of a transaction that gets no answer", async () => {
    await database.pool.query("SELECT 1");
    const failure = await failureOf(
      createCoreClient(database.pool).$transaction(async (tx) => {
        await tx.$queryRaw`SELECT 1`;
        proxy.stall();
        await tx.$queryRaw`SELECT 2`;
      }),
    );
    proxy.resume();

    expect(databaseFaultOf(failure)).to.deep.equal({ kind: "unavailable" });
    const answers = await until(
      async () => Promise.all(Array.from({ length: 4 }, () => database.pool.query("SELECT 1"))),
      { what: "a pool without the stalled connection" },
    );
    expect(answers).to.have.length(4);
  });

  it("leaves slow statements to the server's own limit", async () => {
    const patient = await openDatabase({ url: created.url, poolSize: 1, isEmbedded: false, log });

    expect((await patient.pool.query("SELECT pg_sleep(0.6)")).rowCount).to.equal(1);
    expect((await failureOf(database.pool.query("SELECT pg_sleep(0.6)"))) !== undefined).to.equal(true);
    await patient.close();
  });

  it("leaves lists to their own limit, however long it is", async () => {
    const size = { maxResultBytes: 1e6, maxRowBytes: 1e6 };
    for (const statementTimeoutMs of [30_000, 2_147_483_000]) {
      const lists = { connections: 1, statementTimeoutMs, ...size };
      const given = { url: created.url, poolSize: 2, isEmbedded: false, log, queryTimeoutMs };
      const patient = await openDatabase({ ...given, lists });

      expect((await patient.lists.query("SELECT pg_sleep(0.6)")).rowCount).to.equal(1);
      await patient.close();
    }
  });

  it("waits 7 s for an answer to the relay, whose statements take 2 s at most", async () => {
    const url = through(proxy, created.url);
    const other = await openDatabase({ url, poolSize: 1, relays: true, isEmbedded: false, log });
    await other.relay.query("SELECT 1");
    proxy.stall();
    const startedAt = performance.now();

    const failure = await failureOf(other.relay.query("SELECT 2"));

    expect(performance.now() - startedAt).to.be.within(6_900, 20_000);
    expect(databaseFaultOf(failure)).to.deep.equal({ kind: "unavailable" });
    await other.close();
  }).timeout(60_000);

  it("closes all the same", async () => {
    const other = await openDatabase({
      url: through(proxy, created.url),
      poolSize: 2,
      isEmbedded: false,
      log,
    });
    await Promise.all([other.pool.query("SELECT 1"), other.pool.query("SELECT 1")]);
    let ended = 0;
    other.pool.on("remove", () => (ended += 1));
    proxy.stall();
    const asked = failureOf(other.pool.query("SELECT 2"));
    await until(() => other.pool.idleCount === 1, { what: "the question to be sent" });

    const startedAt = performance.now();
    await other.close();

    expect(performance.now() - startedAt).to.be.lessThan(20_000);
    expect(await asked).to.be.instanceOf(Error);
    await until(() => ended === 2, { what: "both connections to be cut" });
  });
});

describe("waitForDatabase, when the network drops everything", () => {
  it("abandons one query and sends the next", async () => {
    const created = await createTestDatabase();
    const proxy = await startProxy(created.url);
    proxy.stall();
    const reasons: string[] = [];
    const waiting = waitForDatabase({
      url: through(proxy, created.url),
      log,
      signal: AbortSignal.timeout(40_000),
      onWait: (reason) => reasons.push(reason),
    });

    await until(() => reasons[0], { what: "the first question to be given up", timeoutMs: 15_000 });
    proxy.resume();

    await waiting;
    expect(reasons[0]).to.match(/timeout/);
    await proxy.close();
    await created.drop();
  });
});
