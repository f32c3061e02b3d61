import { randomUUID } from "node:crypto";
import { expect } from "chai";
import {
  createReplayStore,
  findReplay,
  moveReplay,
  type NewReplayed,
  type ReplayStore,
} from "../../src/deliveries/replay/replay-store.ts";
import type { Replay } from "../../src/deliveries/replay/replay.ts";
import { testOperator as actor } from "../support/actors.ts";
import { useCoreScene } from "../support/core-scene.ts";
import { until } from "../support/wait.ts";

const eventOf = ({ id }: { readonly id: bigint }, data: string | null): NewReplayed => {
  const about = { parentId: null, previous: null, mayReadOld: false, maxAttempts: 3 };
  return { eventId: String(id), data, ...about };
};

describe("createReplayStore", () => {
  const scene = useCoreScene();
  beforeEach(() => scene.core.sql("TRUNCATE svc.replays"));

  const createStore = (): ReplayStore =>
    createReplayStore({ sql: scene.core.sql, transact: scene.core.transact });
  const find = ({ id }: Replay): Promise<Replay | undefined> => findReplay(scene.core.sql, id);
  const addReplay = async (): Promise<void> => {
    const { id, userId } = await scene.work.addSubscription();
    await scene.core.sql(
      `INSERT INTO svc.replays (subscription_id, user_id, asked, cursor, until_id, total, is_estimate)
       VALUES ($1, $2, '{}', 0, 1, 1, false)`,
      [id, userId],
    );
  };
  it("gives users turns, however many replays each has", async () => {
    const { sql } = scene.core;
    const store = createStore();
    for (const [index, userId] of [7, 7, 7, 7, 8].entries())
      await sql(
        `INSERT INTO svc.replays (subscription_id, user_id, asked, cursor, until_id, total, is_estimate, updated_at)
         VALUES ($1, $2, '{}', 0, 1, 1, false, now() - interval '1 hour')`,
        [index + 1, userId],
      );
    const holder = randomUUID();
    const taken: (readonly [number | undefined, number | undefined])[] = [];

    for (let turn = 0; turn < 6; turn += 1) {
      const replay = await store.claim({ holder, leaseMs: 5_000 });
      taken.push([replay?.userId, replay?.subscriptionId]);
      // The next one is later by the clock, which has milliseconds here.
      await sql("SELECT pg_sleep(0.005)");
    }

    expect(taken.map(([user]) => user)).to.deep.equal([7, 8, 7, 8, 7, 8]);
    expect(taken.flatMap(([user, id]) => (user === 7 ? [id] : []))).to.deep.equal([1, 2, 3]);
  });

  it("gives a replay to one process until that one releases it", async () => {
    await addReplay();
    const store = createStore();
    const [one, other] = [randomUUID(), randomUUID()];
    const claim = async (holder: string): Promise<boolean> =>
      (await store.claim({ holder, leaseMs: 60_000 })) !== undefined;

    const before = [await claim(one), await claim(other), await claim(one)];
    await store.leave(other);
    const between = await claim(other);
    await store.leave(one);

    expect([...before, between, await claim(other)]).to.deep.equal([true, false, true, false, true]);
  });

  it("takes over a replay whose lease ends far ahead: the database's clock was ahead", async () => {
    await addReplay();
    const store = createStore();
    const claim = async (): Promise<boolean> =>
      (await store.claim({ holder: randomUUID(), leaseMs: 60_000 })) !== undefined;
    const claimed: boolean[] = [];
    for (const ahead of ["30 minutes", "2 hours"]) {
      await scene.core.sql(
        "UPDATE svc.replays SET holder = gen_random_uuid(), held_until = now() + $1::interval",
        [ahead],
      );
      claimed.push(await claim());
    }

    expect(claimed).to.deep.equal([false, true]);
  });

  it("takes one whose webhook has 200 retries scheduled for later, but not one with 200 without a slot", async () => {
    await addReplay();
    const store = createStore();
    await scene.core.sql(
      `INSERT INTO svc.delivery_queue (delivery_id, subscription_id, user_id, due_at, is_retry)
       SELECT 1000000 + n, subscription_id, user_id, now() + interval '1 day', true FROM svc.replays, generate_series(1, 200) AS n`,
    );
    const claim = async (): Promise<boolean> =>
      (await store.claim({ holder: randomUUID(), leaseMs: -1 })) !== undefined;

    expect(await claim()).to.equal(true);
    await scene.core.sql("UPDATE svc.delivery_queue SET due_at = NULL");
    expect(await claim()).to.equal(false);
  });

  it("makes nothing when another process has moved the cursor, or the replay has ended", async () => {
    await addReplay();
    const store = createStore();
    const replay = await store.claim({ holder: randomUUID(), leaseMs: 60_000 });
    if (replay === undefined) throw new Error("There is no replay.");
    const events = [eventOf(await scene.work.addEvent(), "{}")];
    const advance = (from: Replay, cursor: string): Promise<void> =>
      store.advance(from, { events, unmade: 0, cursor, isEnd: false });

    await advance(replay, "1");
    await advance(replay, "2");
    await store.stop(replay, "The webhook is gone.");
    await advance({ ...replay, cursor: "1" }, "2");

    expect(await scene.work.deliveries()).to.have.length(1);
    expect(await find(replay)).to.include({
      state: "cancelled",
      cursor: "1",
      done: 1,
      failed: 0,
    });
    await store.stop(replay, "It is gone again.");
    expect(await find(replay)).to.include({ reason: "The webhook is gone." });
  });

  it("cancels a replay's waiting deliveries with it, and no other held ones of its webhook", async () => {
    const { core, work } = scene;
    const subscription = await work.addSubscription();
    const [replay] = await core.sql<{ readonly id: string }>(
      `INSERT INTO svc.replays (subscription_id, user_id, asked, cursor, until_id, total, is_estimate)
       VALUES ($1, $2, '{}', 0, 1, 1, false) RETURNING id`,
      [subscription.id, subscription.userId],
    );
    const held = { status: "held", heldAt: new Date() };
    await work.addDelivery(subscription, held);
    await work.addDelivery(subscription, {
      ...held,
      triggerKind: "manual",
      replayId: BigInt(replay?.id ?? 0),
    });

    await core.transact((sql) => moveReplay(sql, replay?.id ?? "", { state: "cancelled", actor }));

    const statuses = (await work.deliveries()).map(({ replayId, status }) => [replayId !== null, status]);
    expect(statuses).to.have.deep.members([
      [false, "held"],
      [true, "cancelled"],
    ]);
  });

  it("waits for a running erasure, and makes nothing of the event", async () => {
    const { core, work } = scene;
    await addReplay();
    const store = createStore();
    const replay = await store.claim({ holder: randomUUID(), leaseMs: 60_000 });
    if (replay === undefined) throw new Error("There is no replay.");
    const event = await work.addEvent();
    const events = [eventOf(event, '{"text":"whisper"}')];
    const eraser = await core.database.pool.connect();
    try {
      await eraser.query("BEGIN");
      await eraser.query("UPDATE svc.events SET snapshot = 'null' WHERE id = $1", [String(event.id)]);

      const advanced = store.advance(replay, { events, unmade: 0, cursor: "9", isEnd: true });
      const waiting =
        "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
      await until(async () => (await core.sql(waiting)).length > 0, { what: "the statement to wait" });
      await eraser.query("COMMIT");
      await advanced;
    } finally {
      eraser.release(true);
    }

    expect(await core.sql("SELECT FROM svc.event_data")).to.deep.equal([]);
    expect(await find(replay)).to.include({ state: "done", failed: 1 });
  });

  it("makes nothing of an event that was erased since it was read", async () => {
    await addReplay();
    const store = createStore();
    const replay = await store.claim({ holder: randomUUID(), leaseMs: 60_000 });
    if (replay === undefined) throw new Error("There is no replay.");
    const erased = await scene.work.addEvent();
    await scene.core.sql("UPDATE svc.events SET snapshot = 'null' WHERE id = $1", [erased.id]);
    const emptied = await scene.work.addEvent();
    const events = [eventOf(erased, '{"text":"whisper"}'), eventOf(emptied, null)];

    await store.advance(replay, { events, unmade: 0, cursor: "9", isEnd: true });

    expect(await scene.work.deliveries()).to.deep.equal([]);
    expect(await find(replay)).to.include({ state: "done", done: 2, failed: 2 });
  });
});
