import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { Pool } from "pg";
import { createSql } from "../../src/db/sql.ts";
import {
  askForReload,
  createRegistration,
  findProcesses,
  type ProcessRow,
  type Registration,
  type ReloadOutcome,
} from "../../src/operations/processes.ts";
import { runWorkers, type Running } from "../../src/app/workers.ts";
import { testOperator } from "../support/actors.ts";
import { coreOfSuite } from "../support/core-database.ts";
import { createMemoryLog } from "../support/http.ts";
import { until } from "../support/wait.ts";

describe("createRegistration", () => {
  const core = coreOfSuite();
  let registration: Registration;
  let running: Running;
  /** Functions that end the requested reloads, in order. */
  let reloads: ((outcome: ReloadOutcome) => void)[];

  beforeEach(async () => {
    reloads = [];
    registration = createRegistration({
      id: randomUUID(),
      sql: core.sql,
      log: createMemoryLog().log,
      program: "api",
      hash: () => "one",
      reload: () => new Promise((resolve) => reloads.push(resolve)),
      intervalMs: 10,
    });
    running = runWorkers([registration], createMemoryLog().log);
    await until(async () => (await rows()).length === 1, { what: "the row" });
  });

  afterEach(async () => {
    await running.stop();
    await core.sql("DELETE FROM svc.processes");
  });

  async function rows(): Promise<readonly Readonly<Record<string, unknown>>[]> {
    return core.sql("SELECT * FROM svc.processes");
  }

  async function theOne(): Promise<ProcessRow> {
    const [row] = await rows();
    return (await findProcesses(core.sql, [String(row?.["id"])]))[0] as ProcessRow;
  }

  it("registers the process, and removes it from the list", async () => {
    expect((await rows())[0]).to.include({ program: "api", pid: process.pid, configuration: "one" });

    await running.stop();
    await registration.remove();

    expect(await rows()).to.deep.equal([]);
  });

  it("renews the time of its row, though not with every poll", async () => {
    await core.sql("UPDATE svc.processes SET seen_at = now() - interval '1 minute'");
    const isFresh = "SELECT 1 FROM svc.processes WHERE seen_at > now() - interval '1 second'";
    await until(async () => (await core.sql(isFresh)).length === 1, { what: "a sign of life" });
    const [before] = await rows();

    // A later poll sees a request.
    await askForReload(core.sql, testOperator);
    await until(() => reloads.length === 1, { what: "the next look" });

    expect((await rows())[0]?.["seen_at"]).to.deep.equal(before?.["seen_at"]);
  });

  it("registers the process again when its row was deleted", async () => {
    await core.sql("DELETE FROM svc.processes");

    await until(async () => (await rows()).length === 1, { what: "the row" });
  });

  it("reloads once for each request, and stores the outcome", async () => {
    const [asked] = await askForReload(core.sql, testOperator);
    await until(() => reloads.length === 1, { what: "the reload" });
    expect(asked).to.include({ reloadsAsked: 1, reloadsAnswered: 0 });
    expect(await theOne()).to.include({ reloadsAnswered: 0 });

    reloads[0]?.({ kind: "refused", hash: "one", faults: ["a: no", "b: no"] });

    await until(async () => (await theOne()).reloadsAnswered === 1, { what: "the answer" });
    expect(await theOne()).to.deep.include({ configuration: "one", reloadFaults: ["a: no", "b: no"] });
    await askForReload(core.sql, testOperator);
    await until(() => reloads.length === 2, { what: "the second reload" });
    reloads[1]?.({ kind: "applied", hash: "two" });
    await until(async () => (await theOne()).reloadsAnswered === 2, { what: "the second answer" });
    expect(await theOne()).to.deep.include({ configuration: "two", reloadFaults: [] });
    expect(reloads).to.have.length(2);
  });

  it("stores a fault that quotes text which PostgreSQL cannot store, and reloads once", async () => {
    await askForReload(core.sql, testOperator);
    await until(() => reloads.length === 1, { what: "the reload" });

    reloads[0]?.({ kind: "refused", hash: "one", faults: ["a: \0"] });

    await until(async () => (await theOne()).reloadsAnswered === 1, { what: "the answer" });
    expect((await theOne()).reloadFaults).to.deep.equal(["a: \uFFFD"]);
    expect(reloads).to.have.length(1);
  });

  it("answers all requests during a reload after one further reload", async () => {
    await askForReload(core.sql, testOperator);
    await until(() => reloads.length === 1, { what: "the reload" });
    // Both at once: a poll between them would see only one.
    await core.sql("UPDATE svc.processes SET reloads_asked = reloads_asked + 2");
    await until(() => reloads.length === 2, { what: "one more" });

    reloads[0]?.({ kind: "applied", hash: "two" });
    await until(async () => (await theOne()).reloadsAnswered === 1, { what: "the first answer" });
    reloads[1]?.({ kind: "applied", hash: "three" });

    await until(async () => (await theOne()).reloadsAnswered === 3, { what: "the others" });
    expect(reloads).to.have.length(2);
  });

  it("stores the outcome of a reload that a signal requested", async () => {
    await registration.note({ kind: "applied", hash: "two" });

    expect(await theOne()).to.include({ configuration: "two", reloadsAsked: 0, reloadsAnswered: 0 });
  });

  it("warns once of a right on svc.processes that its role lacks", async () => {
    const role = "svc_test_unlisted";
    const url = new URL(core.url);
    url.searchParams.set("options", `-c role=${role}`);
    await core.sql(`CREATE ROLE ${role}`);
    const pool = new Pool({ connectionString: url.href });
    // Dropping the database may cut a connection that is about to end.
    pool.on("error", () => undefined);
    const { log, lines } = createMemoryLog();
    const blind = createRegistration({
      id: randomUUID(),
      sql: createSql({ pool, isEmbedded: false }),
      log,
      program: "api",
      hash: () => "one",
      reload: () => Promise.reject(new Error("not asked for")),
      intervalMs: 10,
    });
    const polling = runWorkers([blind], log);
    try {
      await until(() => lines.length > 2, { what: "several polls" });

      const [first, ...later] = lines.map(({ level }) => level);
      expect(first).to.equal(40);
      expect(later).to.not.include(40);
      expect(lines[0]?.["reason"]).to.match(/lacks a right: permission denied for schema svc.*Two roles/);
    } finally {
      await polling.stop();
      await pool.end();
      await core.sql(`DROP ROLE ${role}`);
    }
  });

  const add = (
    program: string,
    overrides: { readonly id?: string; readonly age?: string } = {},
  ): Promise<unknown> =>
    core.sql(
      `INSERT INTO svc.processes (id, program, host, pid, configuration, reload_faults, seen_at)
       VALUES ($1, $2, 'host', 1, 'one', '{}', now() - $3::interval)`,
      [overrides.id ?? randomUUID(), program, overrides.age ?? "0"],
    );

  describe("of dispatchers", () => {
    const other = randomUUID();
    let lists: (readonly string[])[];
    let id: string;

    const startDispatcher = (): void => {
      const { log } = createMemoryLog();
      const worker = createRegistration({
        id,
        sql: core.sql,
        log,
        program: "dispatcher",
        hash: () => "one",
        reload: () => Promise.reject(new Error("not asked for")),
        onDispatchers: (ids) => lists.push(ids),
        intervalMs: 10,
      });
      running = runWorkers([worker], log);
    };

    beforeEach(async () => {
      await running.stop();
      await core.sql("DELETE FROM svc.processes");
      lists = [];
      id = randomUUID();
    });

    it("returns the live ones from the first poll on, itself included", async () => {
      await add("all", { id: other, age: "14 seconds" });
      await add("dispatcher", { age: "16 seconds" });
      await add("api");

      startDispatcher();
      await until(() => lists.length > 0, { what: "a list" });

      expect(lists[0]).to.have.members([id, other]);
    });

    it("leaves out one that died before the database's clock went back, and keeps itself", async () => {
      await add("dispatcher", { age: "-60 seconds" });
      startDispatcher();
      await until(() => lists.length > 0, { what: "a list" });
      const before = lists.length;
      await core.sql("UPDATE svc.processes SET seen_at = now() + interval '1 hour'");

      // At most one list is empty: with it, the process has set its own time.
      await until(() => lists.slice(before).some((ids) => ids.length === 0), {
        what: "the list without either",
      });
      await until(() => lists.at(-1)?.join() === id, { what: "the list with it" });
    });

    it("leaves itself out once when its own row was too old: others counted it as dead", async () => {
      startDispatcher();
      await until(() => lists.length > 0, { what: "a list" });
      const before = lists.length;

      await core.sql("UPDATE svc.processes SET seen_at = now() - interval '16 seconds'");
      await until(() => lists.slice(before).some((ids) => ids.length === 0), { what: "the list without it" });
      await until(() => lists.at(-1)?.length === 1, { what: "the list with it" });
    });
  });

  it("gets no request when its row has been too old for a while, and is deleted in the end", async () => {
    await running.stop();
    await core.sql("UPDATE svc.processes SET seen_at = now() - interval '20 seconds'");
    expect(await askForReload(core.sql, testOperator)).to.deep.equal([]);
    await core.sql("UPDATE svc.processes SET seen_at = now() - interval '2 hours'");
    const [dead] = await rows();

    const { log } = createMemoryLog();
    const worker = createRegistration({
      id: randomUUID(),
      sql: core.sql,
      log,
      program: "dispatcher",
      hash: () => "one",
      reload: () => Promise.reject(new Error("not asked for")),
      intervalMs: 10,
    });
    running = runWorkers([worker], log);

    const isForgotten = async (): Promise<boolean> => {
      const found = await rows();
      return found.length === 1 && found[0]?.["id"] !== dead?.["id"];
    };
    await until(isForgotten, { what: "the dead one to be forgotten" });
  });
});
