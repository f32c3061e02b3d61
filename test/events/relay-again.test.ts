import { expect } from "chai";
import { queues } from "../../src/broker/topology.ts";
import { createRelayShares } from "../../src/events/relay-shares.ts";
import { never, numbers, present, requeueAfterMs, useRelayScene } from "../support/relay-scene.ts";
import { until } from "../support/wait.ts";

// Republished events, and those left to other relays; relay.test.ts has the rest.
describe("createRelay", () => {
  const scene = useRelayScene();
  const { start, addEvents, fanOut, published, untilPublished, untilLine, untilTurns, untilChecks } = scene;

  const addOther = (resources = ["notes", "papers"]): Promise<unknown> =>
    createRelayShares({ sql: scene.core.sql, name: "other", resources }).beat();
  const addOf = (writer: string, count: number): Promise<unknown> =>
    scene.core.sql(
      `WITH writer AS (SELECT set_config('application_name', $1, false) AS name)
       INSERT INTO svc.events (resource, trigger, record_id, snapshot)
       SELECT 'notes', 'on_create', $1 || n, '{}' FROM writer CROSS JOIN generate_series(1, $2::int) AS n`,
      [writer, count],
    );

  it("publishes no event that has left the outbox while its record was made: it was erased", async () => {
    await addEvents(2);
    start({
      async present(resource, events) {
        await scene.core.sql("DELETE FROM svc.outbox WHERE event_id = $1", [events[0]?.id]);
        scene.skewMs += 1_000;
        return present(resource, events);
      },
    });

    await untilPublished(1);
    await untilTurns(3);

    expect(published()).to.deep.equal(["2"]);
  });

  describe("a resource whose records cannot be presented", () => {
    for (const [what, answer] of [
      ["for a fault of its own", { kind: "none", reason: "no scope", isPassing: false }],
      ["since the database is away", { kind: "none", reason: "cut", isPassing: true }],
    ] as const) {
      it(`rests, ${what}, delays no other, and loses none of a bulk`, async () => {
        await addEvents(40);
        await addEvents(3, "papers");
        let isBroken = true;
        let tries = 0;
        start({
          batchSize: 30,

          async present(resource, events) {
            if (resource !== "notes" || !isBroken) return present(resource, events);
            tries += 1;
            return answer;
          },
        });
        await untilPublished(3);
        expect(await untilLine("relay.resting")).to.deep.include({
          resource: "notes",
          reason: answer.reason,
          retryInMs: 1_000,
        });
        await untilTurns(10);
        expect(tries).to.equal(1);

        scene.skewMs += 1_000;
        await until(() => tries > 1, { what: "a probe" });
        isBroken = false;
        scene.skewMs += 2_000;

        await untilPublished(43);
        expect(published().slice(3).toSorted()).to.deep.equal(numbers(40).toSorted());
        expect(scene.lines.some(({ event }) => event === "relay.recovered")).to.equal(true);
      });
    }
  });

  it("continues after the database failed, and after a present that rejects", async () => {
    // Events in flight for five seconds would count as lost, and be published again.
    scene.stoppedAtMs = performance.now();
    await scene.core.sql("ALTER TABLE svc.outbox RENAME TO outbox_away");
    let isBroken = true;
    start({
      pollIntervalMs: never,
      present: (resource, events) =>
        isBroken ? Promise.reject(new Error("a bug")) : present(resource, events),
    });
    try {
      await until(() => scene.lines.some(({ msg }) => msg === "relay turn failed; trying again"), {
        what: "a failed turn",
      });
    } finally {
      await scene.core.sql("ALTER TABLE svc.outbox_away RENAME TO outbox");
    }
    await scene.work.addEvent();
    await until(
      () => (scene.announce(""), scene.lines.some(({ msg }) => msg === "relay failed; trying again")),
      {
        what: "a failed present",
      },
    );
    isBroken = false;
    scene.skewMs += 1_000;

    await until(() => (scene.announce(""), scene.broker.published.length > 0), { what: "the event" });
  });

  it("has a thousand in flight at most, of one owner as many as are left free, and continues as they are fanned out", async () => {
    start({ batchSize: 400 });
    for (const [ownerId, expected] of [
      ["1", 390],
      ["1", 500],
      ["2", 750],
      ["3", 875],
    ] as const) {
      await addEvents(390, "notes", ownerId);
      await untilPublished(expected);
      await untilChecks(3);
      expect(scene.broker.published).to.have.length(expected);
    }

    await fanOut();
    scene.skewMs += 1_000;

    await untilPublished(4 * 390);
  });

  it("finds the event of an owner after many of another, before these are published", async () => {
    await addEvents(450, "notes", "1");
    await scene.work.addEvent({ ownerId: "2", recordId: "theirs" });
    start({ batchSize: 100 });

    await untilPublished(100);

    expect(published().indexOf("theirs")).to.equal(1);
  });

  for (const [whose, most, owner] of [
    ["without owners", 120, "NULL"],
    ["of 1,300 owners", 220, "event.n::text"],
  ] as const) {
    it(`has a twentieth of that for a backlog ${whose}, which new events pass`, async () => {
      await scene.core.sql(
        `INSERT INTO svc.events (resource, trigger, record_id, owner_id, snapshot)
         SELECT 'notes', 'on_create', event.n, ${owner}, jsonb_build_object('n', event.n) FROM generate_series(1, 1300) AS event (n) ORDER BY event.n`,
      );
      start({ batchSize: 100 });
      await untilPublished(100);
      await untilChecks(3);
      expect(scene.broker.published.length).to.be.within(50, most);

      await scene.work.addEvent({ recordId: "new", ownerId: "new" });
      await until(() => published().includes("new"), { what: "what is new" });

      await fanOut();
      scene.skewMs += 1_000;
      // 26 rounds, each of which deletes 50 rows one by one: more than 10 s beside other work.
      // Events that are not fanned out in time are published twice.
      await until(() => new Set(published()).size === 1_301, { what: "all of them", timeoutMs: never });
      expect(new Set(published())).to.deep.equal(new Set([...numbers(1_300), "new"]));
    });
  }

  it("checks the room more rarely when nothing leaves the outbox, and often again after the first that does", async () => {
    scene.stoppedAtMs = performance.now();
    start({ batchSize: 100 });
    await addEvents(500);
    await untilPublished(100);
    /** Returns the number of checks in so many steps of 10 ms. */
    const checksIn = async (steps: number): Promise<number> => {
      const before = scene.checks();
      for (let step = 0; step < steps; step += 1) {
        scene.skewMs += 10;
        await untilTurns(2);
      }
      return scene.checks() - before;
    };
    expect(await checksIn(20)).to.be.within(19, 21);
    await checksIn(12);
    expect(await checksIn(10)).to.be.within(0, 2);

    await scene.core.sql("DELETE FROM svc.outbox WHERE event_id = (SELECT min(event_id) FROM svc.outbox)");
    await checksIn(10);
    expect(await checksIn(10)).to.be.within(9, 11);
  });

  it("checks the room soon after it has none, however recent the last check", async () => {
    scene.stoppedAtMs = performance.now();
    start({ batchSize: 100 });
    await addEvents(1);
    await untilPublished(1);
    await untilTurns(3);
    await addEvents(500);
    await untilPublished(101);
    await untilTurns(3);
    const before = published().length;
    await fanOut();
    await until(async () => (await scene.work.outbox()).length === 501 - before, {
      what: "what was published to be fanned out",
    });

    scene.skewMs += 30;

    await untilPublished(before + 50);
  });

  it("publishes all that a broker refused for long, within seconds of the first confirm", async () => {
    scene.stoppedAtMs = performance.now();
    scene.broker.refuses = () => true;
    await addEvents(300);
    start({ batchSize: 70 });
    const pass = async (ms: number): Promise<void> => {
      scene.skewMs += ms;
      await untilTurns(1);
    };
    await fanOut();
    const left = async (): Promise<number> => (await scene.work.outbox()).length;
    for (let seconds = 0; seconds < 200; seconds += 1) await pass(1_000);

    scene.broker.refuses = () => false;
    while ((await left()) === 300) await pass(1_000);
    for (let step = 0; step < 100; step += 1) await pass(100);

    expect(await left()).to.equal(0);
  });

  describe("events that are not fanned out in time", () => {
    it("are published again once the queue is empty: then the broker has lost them", async () => {
      await scene.broker.consume({
        queue: queues.fanout,
        prefetch: 100,
        onMessage: (message) => message.ack(),
      });
      await addEvents(3);
      start();
      await untilPublished(3);

      // The first second belongs to the wait after a failure.
      scene.skewMs += 5_001;
      expect(await untilLine("relay.stranded")).to.include({ events: 3 });
      scene.skewMs += 1_000;

      await until(
        () => {
          scene.skewMs += 1_000;
          return scene.broker.published.length >= 6;
        },
        { what: "all again", timeoutMs: never },
      );
      expect(new Set(published())).to.deep.equal(new Set(numbers(3)));
    });

    it("are logged at once, and then once a minute with their number", async () => {
      scene.stoppedAtMs = performance.now();
      await scene.broker.consume({
        queue: queues.fanout,
        prefetch: 100,
        onMessage: (message) => message.ack(),
      });
      await addEvents(3);
      start();
      await untilPublished(3);
      const told = (): unknown[] =>
        scene.lines.filter(({ event }) => event === "relay.stranded").map(({ events }) => events);

      // Each loss doubles the wait before the next try, and is detected after 5 s.
      for (let second = 0; second < 40; second += 1) {
        scene.skewMs += 1_000;
        await untilTurns(2);
      }
      expect(published().length).to.be.at.least(9);
      expect(told()).to.deep.equal([3]);
      scene.skewMs += 60_000;

      const [, rest] = await until(() => told().length === 2 && told(), { what: "a second line" });
      expect(rest).to.be.within(6, 15);
    });

    it("stay while the queue holds messages, up to the limit", async () => {
      await addEvents(3);
      start();
      await untilPublished(3);

      scene.skewMs += 2 * requeueAfterMs;
      await untilTurns(5);
      expect(published(), "all three are in the queue").to.have.length(3);

      // It consumes one message, and never settles it.
      await scene.broker.consume({ queue: queues.fanout, prefetch: 1, onMessage: () => undefined });
      await untilLine("relay.stranded");
      scene.skewMs += 1_000;
      await untilPublished(6);
    });

    it("are published again when a crash of the database brings them back", async () => {
      await scene.work.addEvent();
      const [row] = await scene.core.sql("SELECT * FROM svc.outbox");
      await fanOut();
      start();
      await until(async () => (await scene.work.outbox()).length === 0, { what: "the fan-out" });
      await untilChecks(1);

      await scene.core.sql(
        "INSERT INTO svc.outbox (event_id, transaction_id, resource, writer, bytes, owner_id) VALUES ($1, $2, $3, $4, $5, $6)",
        Object.values(row as object),
      );

      await until(
        () => {
          scene.skewMs += 500;
          return scene.broker.published.length >= 2;
        },
        { what: "the event again", timeoutMs: never },
      );
    });
  });

  describe("beside another relay", () => {
    it("leaves it its events, until it is silent; then it publishes them, and its own once", async () => {
      await addOther();
      await addOf("other", 2);
      await addOf("svc", 2);
      start();
      await untilPublished(2);
      await untilTurns(5);
      expect(published()).to.have.members(["svc1", "svc2"]);

      await scene.core.sql(
        "UPDATE svc.relays SET seen_at = now() - interval '5 seconds' WHERE name = 'other'",
      );
      scene.skewMs += 1_000;

      await untilPublished(4);
      expect(published()).to.have.members(["svc1", "svc2", "other1", "other2"]);
    });

    it("publishes half of the events that none of them wrote", async () => {
      await addOther();
      await addOf("psql", 20);

      start();
      await untilPublished(10);
      await untilTurns(5);

      expect(scene.broker.published).to.have.length(10);
    });

    it("publishes all of a resource that the other does not know, until it does", async () => {
      await addOther(["papers"]);
      await addOf("psql", 20);
      await addOf("other", 1);
      start();
      await untilPublished(21);

      await addOther();
      scene.skewMs += 1_000;
      await untilTurns(2);
      await addOf("other", 1);
      await addOf("svc", 1);
      await untilPublished(22);
      await untilTurns(5);

      expect(published().slice(21)).to.deep.equal(["svc1"]);
    });

    it("leaves its share on stop", async () => {
      start();
      await untilTurns(1);
      expect(await scene.core.sql("SELECT name FROM svc.relays")).to.deep.equal([{ name: "svc" }]);

      await scene.stop();

      expect(await scene.core.sql("SELECT name FROM svc.relays")).to.deep.equal([]);
    });
  });

  it("publishes on stop the events that it is presenting", async () => {
    let go: (() => void) | undefined;
    await addEvents(2);
    start({
      async present(resource, events) {
        await new Promise<void>((resolve) => (go = resolve));
        return present(resource, events);
      },
    });
    await until(() => go, { what: "the present" });

    const stopped = scene.stop();
    for (let turn = 0; turn < 10; turn += 1) await scene.core.sql("SELECT");
    expect(await scene.core.sql("SELECT name FROM svc.relays")).to.deep.equal([{ name: "svc" }]);
    go?.();
    await stopped;

    expect(published()).to.deep.equal(["1", "2"]);
  });
});
