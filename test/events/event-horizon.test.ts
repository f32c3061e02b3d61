import { expect } from "chai";
import { Client } from "pg";
import type { Sql } from "../../src/db/sql.ts";
import { createEventHorizon } from "../../src/events/event-horizon.ts";
import { openCoreDatabase, type CoreDatabase } from "../support/core-database.ts";
import { until } from "../support/wait.ts";

const insertText = `INSERT INTO svc.events (resource, trigger, record_id, snapshot) VALUES ('notes', 'on_create', '1', '{}')
  RETURNING id::text`;

/** Begins a transaction that has an id before it writes an event, as under a capture trigger. */
async function begin(writer: Client): Promise<bigint> {
  await writer.query("BEGIN; SELECT pg_current_xact_id()");
  return BigInt((await writer.query<{ id: string }>(insertText)).rows[0]?.id ?? 0);
}

describe("createEventHorizon", () => {
  let core: CoreDatabase;
  let writers: Client[];

  beforeEach(async () => {
    core = await openCoreDatabase();
    writers = [];
  });
  afterEach(async () => {
    await Promise.all(writers.map((writer) => writer.end()));
    await core.close();
  });

  async function openWriter(): Promise<Client> {
    const writer = new Client({ connectionString: core.url });
    await writer.connect();
    writers.push(writer);
    return writer;
  }

  it("is the last event without an open transaction", async () => {
    const horizon = createEventHorizon({ sql: core.sql });
    expect(await horizon()).to.equal(0n);

    const [row] = await core.sql<{ id: string }>(insertText);

    expect(await horizon()).to.equal(BigInt(row?.id ?? 0));
  });

  it("stays before the events of an open transaction, though later ones are committed", async () => {
    const horizon = createEventHorizon({ sql: core.sql });
    const before = await horizon();
    const late = await openWriter();
    const lateId = await begin(late);
    const [early] = await core.sql<{ id: string }>(insertText);

    expect(BigInt(early?.id ?? 0) > lateId).to.equal(true);
    expect(await horizon()).to.equal(before);
    expect(await horizon()).to.equal(before);

    await late.query("COMMIT");
    expect(await horizon()).to.equal(BigInt(early?.id ?? 0));
  });

  it("is unknown while an earlier transaction is open, and a new reader begins after all ids", async () => {
    const [old] = await core.sql<{ id: string }>(insertText);
    await (await openWriter()).query("BEGIN; SELECT pg_current_xact_id()");
    const horizon = createEventHorizon({ sql: core.sql });

    expect(await horizon.start()).to.equal(BigInt(old?.id ?? 0));
    expect(await horizon()).to.equal(0n);
  });

  it("is where a new reader begins, once it is known", async () => {
    const horizon = createEventHorizon({ sql: core.sql });
    await core.sql(insertText);
    const reached = await horizon();
    await begin(await openWriter());

    expect(await horizon.start()).to.equal(reached);
  });

  it("advances while transactions overlap without end", async () => {
    const horizon = createEventHorizon({ sql: core.sql });
    await horizon();
    let writer = await openWriter();
    let last = await begin(writer);
    for (let turn = 0; turn < 3; turn += 1) {
      const next = await openWriter();
      await horizon();
      const nextId = await begin(next);
      await horizon();
      await writer.query("COMMIT");
      const reached = await horizon();

      expect(reached >= last, `turn ${turn}`).to.equal(true);
      expect(reached < nextId, `turn ${turn}`).to.equal(true);
      [writer, last] = [next, nextId];
    }
  });

  it("starts over on a server that has fewer events, also while a transaction is open there", async () => {
    const horizon = createEventHorizon({ sql: core.sql });
    await core.sql(insertText);
    expect(await horizon()).to.equal(1n);

    await (await openWriter()).query("BEGIN; SELECT pg_current_xact_id()");
    await core.sql("TRUNCATE svc.events RESTART IDENTITY");

    expect(await horizon()).to.equal(0n);
  });

  it("is read again for a call during a read", async () => {
    const horizon = createEventHorizon({ sql: core.sql });
    for (const last of [1n, 2n, 3n]) {
      const first = horizon();
      await core.sql(insertText);

      const [, second] = await Promise.all([first, horizon()]);

      expect(second).to.equal(last);
    }
  });

  it("is read again for a call during a read that fails", async () => {
    const look: { fail?: () => void; hasFailed?: true } = {};
    const sql: Sql = async (...statement) => {
      if (look.hasFailed) return core.sql(...statement);
      await new Promise<void>((resolve) => (look.fail = resolve));
      look.hasFailed = true;
      throw new Error("away");
    };
    const horizon = createEventHorizon({ sql });
    const first = horizon().catch(String);
    await until(() => look.fail, { what: "the first look" });
    const second = horizon();
    look.fail?.();

    expect(await Promise.all([first, second])).to.deep.equal(["Error: away", 0n]);
  });

  it("reads once at a time, also for a call between two reads", async () => {
    let [atWork, most] = [0, 0];
    const sql: Sql = async (...statement) => {
      atWork += 1;
      most = Math.max(most, atWork);
      return core.sql(...statement).finally(() => (atWork -= 1)) as never;
    };
    const horizon = createEventHorizon({ sql });
    const first = horizon();
    const between = first.then(() => horizon());
    await Promise.all([first, horizon(), between]);

    expect(most).to.equal(1);
  });
});
