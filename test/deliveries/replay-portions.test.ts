import { expect } from "chai";
import { openDatabase, type Database } from "../../src/db/client.ts";
import { ResultTooLargeError } from "../../src/db/result-limit.ts";
import { createSql } from "../../src/db/sql.ts";
import { createReplayStore } from "../../src/deliveries/replay/replay-store.ts";
import { createReplayWorker, type ReplayWorkerOptions } from "../../src/deliveries/replay/replay-worker.ts";
import { until } from "../support/wait.ts";
import { useWorkerScene } from "../support/worker-scene.ts";

const megabyte = 1024 ** 2;

const asCaptured: ReplayWorkerOptions["present"] = async (_, events) => ({
  kind: "each",
  answers: events.map(({ snapshot, previous }) => ({
    kind: "presented",
    data: snapshot,
    ...(previous && { previous }),
  })),
});

describe("createReplayWorker", () => {
  const scene = useWorkerScene();
  let database: Database;

  before(async () => {
    const limits = { maxResultBytes: 2 * megabyte, maxRowBytes: 3 * megabyte };
    const lists = { connections: 1, statementTimeoutMs: 10_000, ...limits };
    database = await openDatabase({ url: scene.core.url, poolSize: 2, lists, isEmbedded: false });
  });
  beforeEach(() => scene.core.sql("TRUNCATE svc.replays"));
  after(() => database.close());

  /** Adds events of records of these sizes in bytes, which PostgreSQL compresses well. */
  const addEvents = async (...sizes: readonly number[]): Promise<void> => {
    for (const size of sizes) await scene.work.addEvent({ snapshot: { text: "a".repeat(size) } });
  };

  /** Adds a replay of everything to a new webhook. Returns the id of its user. */
  async function addReplay(): Promise<number> {
    const { sql } = scene.core;
    const { id, userId } = await scene.work.addSubscription();
    const asked = {
      since: "2020-01-01",
      until: "2100-01-01",
      status: ["never"],
      events: null,
      resource: null,
    };
    await sql("DELETE FROM svc.outbox");
    await sql(
      `INSERT INTO svc.replays (subscription_id, user_id, asked, cursor, until_id, total, is_estimate)
       SELECT $1, $2, $3, 0, max(id), 1, false FROM svc.events`,
      [id, userId, JSON.stringify(asked)],
    );
    return userId;
  }

  /**
   * Replays all events to a webhook. Returns the finished replay, and the number of events of each
   * portion.
   */
  async function replayAll(
    present: ReplayWorkerOptions["present"],
    judge: ReplayWorkerOptions["eligibility"]["judge"] = async (pairs) => pairs.map(() => true),
    intervalMs = 10,
  ): Promise<{ readonly done: number; readonly failed: number; readonly portions: readonly unknown[] }> {
    const { sql } = scene.core;
    await addReplay();
    scene.run(
      createReplayWorker({
        sql,
        dataSql: createSql({ pool: database.lists, isEmbedded: false }),
        store: createReplayStore({ sql, transact: scene.core.transact }),
        eligibility: { judge },
        filters: { passing: async (_, answers) => answers },
        scheduleOf: () => ({ maxAttempts: 3, backoffMs: [1], timeoutMs: 1_000 }),
        present,
        intervalMs,
        log: scene.log,
      }),
    );
    const [ended] = await until(
      async () => {
        const rows = await sql<{ done: number; failed: number }>(
          "SELECT done::int, failed::int FROM svc.replays WHERE state = 'done'",
        );
        return rows.length > 0 && rows;
      },
      { what: "the end of the replay" },
    );
    const portions = scene.lines.filter(({ event }) => event === "replay.portion");
    return {
      done: ended?.done ?? 0,
      failed: ended?.failed ?? 0,
      portions: portions.map(({ deliveries }) => deliveries),
    };
  }

  it("reads no more records at a time than a connection may hold, even when they compress well", async () => {
    await addEvents(...Array.from({ length: 7 }, () => 900_000));

    const { portions, ...ended } = await replayAll(asCaptured);

    expect(ended).to.deep.equal({ done: 7, failed: 0 });
    expect(portions).to.deep.equal([2, 2, 2, 1]);
  });

  it("counts a single record as failed that no connection may hold", async () => {
    await addEvents(1, 5_000_000, 1);

    expect(await replayAll(asCaptured)).to.deep.include({ done: 3, failed: 1 });
  });

  it("presents fewer at a time when the related records are too large, and loses none", async () => {
    await addEvents(1, 1, 1);

    const { portions, ...ended } = await replayAll(async (resource, events) => {
      if (events.length > 1) throw new ResultTooLargeError(1);
      return asCaptured(resource, events);
    });

    expect(ended).to.deep.equal({ done: 3, failed: 0 });
    expect(portions).to.deep.equal([1, 1, 1]);
  });

  it("presents fewer at a time when they take too long together, and loses none", async () => {
    await addEvents(1, 1, 1);

    const { portions, ...ended } = await replayAll(async (resource, events) =>
      events.length > 1
        ? { kind: "none", reason: "statement timeout", isPassing: true, isTooSlow: true }
        : asCaptured(resource, events),
    );

    expect(ended).to.deep.equal({ done: 3, failed: 0 });
    expect(portions).to.deep.equal([1, 1, 1]);
  });

  it("limits the texts of a portion, when many show one large record", async () => {
    await addEvents(1, 1, 1);
    const data = { text: "a".repeat(3 * megabyte) };

    const { portions, ...ended } = await replayAll(async (_, events) => ({
      kind: "each",
      answers: events.map(() => ({ kind: "presented", data })),
    }));

    expect(ended).to.deep.equal({ done: 3, failed: 0 });
    expect(portions).to.deep.equal([1, 1, 1]);
  });

  it("leaves out the old row when both rows exceed a message, like the relay", async () => {
    await addEvents(1, 1, 1);
    const shown = [8 * megabyte, 7.9 * megabyte, 1];

    const { done } = await replayAll(async (_, events) => {
      if (events.length > 1) throw new ResultTooLargeError(1);
      const document = { text: "a".repeat(shown.shift() ?? 0) };
      return { kind: "each", answers: [{ kind: "presented", data: document, previous: document }] };
    });

    expect(done).to.equal(3);
    const kept = await scene.core.sql<{ previous: boolean }>(
      "SELECT previous IS NOT NULL AS previous FROM svc.event_data ORDER BY event_id DESC LIMIT 3",
    );
    expect(kept.map(({ previous }) => previous)).to.deep.equal([true, true, false]);
  });

  it("leaves out the old row when no connection may hold both, and sends the new one", async () => {
    const text = "a".repeat(2 * megabyte);
    await scene.work.addEvent({ snapshot: { text }, previous: { text } });

    expect(await replayAll(asCaptured)).to.deep.include({ done: 1, failed: 0 });
    const [kept] = await scene.core.sql<{ bytes: number; previous: string | null }>(
      "SELECT length(data) AS bytes, previous FROM svc.event_data ORDER BY event_id DESC LIMIT 1",
    );
    expect(kept).to.deep.equal({ bytes: JSON.stringify({ text }).length, previous: null });
    // Without the old row, its reader needs no right to it.
    const [made] = await scene.work.deliveries();
    expect(made?.hasPrevious).to.equal(null);
  });

  it("continues with other replays while one must wait", async () => {
    await addEvents(1);
    const stuck = await addReplay();
    const judge: ReplayWorkerOptions["eligibility"]["judge"] = async (pairs) =>
      pairs.map(({ user }) => (user.id === stuck ? undefined : true));

    expect(await replayAll(asCaptured, judge, 600_000)).to.deep.include({ done: 1, failed: 0 });
    expect(await scene.core.sql("SELECT user_id, state, reason FROM svc.replays ORDER BY id")).to.deep.equal([
      { user_id: stuck, state: "running", reason: "Who may read an event of notes cannot be decided now." },
      { user_id: stuck + 1, state: "done", reason: null },
    ]);
  });

  it("makes the deliveries before an event that cannot be judged now, but not its own", async () => {
    await addEvents(1, 1, 1);
    const [, second] = await scene.work.events();
    let tries = 0;

    const { portions } = await replayAll(asCaptured, async (pairs, which) => {
      if (which === undefined) tries += 1;
      return pairs.map(({ event }) => (event.id === String(second?.id) && tries < 3 ? undefined : true));
    });

    expect(portions).to.deep.equal([1, 2]);
  });

  it("makes the deliveries before an event whose old row cannot be judged now", async () => {
    await addEvents(1);
    await scene.work.addEvent({ previous: { text: "a" } });
    let tries = 0;

    const { portions } = await replayAll(asCaptured, async (pairs, which) => {
      if (which === "previous") tries += 1;
      return pairs.map(() => (which === "previous" && tries < 3 ? undefined : true));
    });

    expect(portions).to.deep.equal([1, 1]);
    expect((await scene.work.deliveries()).map(({ hasPrevious }) => hasPrevious)).to.deep.equal([null, true]);
  });

  it("makes no delivery without its old row while its readers cannot be decided", async () => {
    await scene.work.addEvent({ previous: { text: "a" } });
    let tries = 0;

    const { portions } = await replayAll(asCaptured, async (pairs, which) => {
      if (which === "previous") tries += 1;
      return pairs.map(() => (which === "previous" && tries < 3 ? undefined : true));
    });

    expect(portions).to.deep.equal([1]);
    const [made] = await scene.work.deliveries();
    expect(made?.hasPrevious).to.equal(true);
  });

  it("makes no delivery of an event while its readers cannot be decided: it may be another user's", async () => {
    await addEvents(1, 1);
    let tries = 0;

    const { portions } = await replayAll(asCaptured, async (pairs) => {
      if (pairs.length > 0) tries += 1;
      return pairs.map((_, index) => (tries < 3 ? undefined : index > 0));
    });

    expect(portions).to.deep.equal([1]);
    expect(await scene.work.deliveries()).to.have.length(1);
  });
});
