import { expect } from "chai";
import { exchanges } from "../../src/broker/topology.ts";
import { eventOf } from "../../src/events/event-message.ts";
import type { Presented } from "../../src/events/event-presenter.ts";
import { never, numbers, present, presented, seal, useRelayScene } from "../support/relay-scene.ts";
import { until } from "../support/wait.ts";

const refused: Presented = { kind: "refused", reason: "no price for this one" };

describe("createRelay", () => {
  const scene = useRelayScene();
  const { start, addEvents, fanOut, published, untilPublished, untilLine, untilTurns } = scene;
  const addLarge = (resource: string): Promise<unknown> =>
    scene.core.sql(
      `INSERT INTO svc.events (resource, trigger, record_id, snapshot)
       VALUES ($1, 'on_create', 'large', jsonb_build_object('text', repeat('x', 17000000)))`,
      [resource],
    );
  const tooLarge = (): number => scene.lines.filter(({ event }) => event === "relay.too_large").length;
  const bringBack = (row: unknown): Promise<unknown> =>
    scene.core.sql("INSERT INTO svc.outbox SELECT * FROM jsonb_populate_record(NULL::svc.outbox, $1)", [row]);

  it("publishes an event as the sealed envelope of the contract, once", async () => {
    const event = await scene.work.addEvent({ trigger: "on_update", ownerId: "7", snapshot: { text: "é" } });
    await scene.core.sql("UPDATE svc.events SET occurred_at = '2026-03-28T14:30:00.123456Z'");

    start();
    await untilPublished(1);
    await untilTurns(5);

    const [message, ...more] = scene.broker.published;
    expect(more).to.deep.equal([]);
    expect(message).to.include({
      exchange: exchanges.events,
      routingKey: "notes.on_update",
      messageId: event.uuid,
    });
    expect(JSON.parse(String(message?.body))).to.deep.equal({
      event_id: event.uuid,
      event: "on_update",
      resource: "notes",
      record_id: "1",
      owner_id: "7",
      data: { text: "é" },
      timestamp: "2026-03-28T14:30:00.123456Z",
    });
    const incoming = message as unknown as Parameters<typeof eventOf>[0];
    expect(eventOf(incoming, seal)).to.include({ id: String(event.id) });
  });

  it("writes one log line for each turn, with the events read and the duration", async () => {
    const events = [
      await scene.work.addEvent({ recordId: "1" }),
      await scene.work.addEvent({ recordId: "refused" }),
    ];

    start({
      present: async (_, given) => ({
        kind: "each",
        answers: given.map(({ recordId }) => (recordId === "refused" ? refused : presented({}))),
      }),
    });
    const turn = await untilLine("relay.turn");

    expect(turn).to.deep.include({
      resource: "notes",
      read: 2,
      published: 1,
      eventUuids: events.map(({ uuid }) => uuid),
    });
    for (const duration of ["oldestAgeMs", "publishMs"])
      expect(turn[duration], duration).to.be.within(0, 10_000);
    expect(scene.lines.find(({ event }) => event === "relay.refused")).to.deep.include({
      eventUuids: [events[1]?.uuid],
      reason: "no price for this one",
    });
  });

  it("takes one full batch after another, in order", async () => {
    await addEvents(12);

    start();
    await untilPublished(12);

    expect(published()).to.deep.equal(numbers(12));
  });

  it("does not forget a wake during a turn", async () => {
    await scene.work.addEvent({ recordId: "first" });
    start({
      pollIntervalMs: never,
      async present(resource, events) {
        if (events[0]?.recordId === "first") {
          await scene.work.addEvent({ recordId: "second" });
          scene.announce("");
        }
        return present(resource, events);
      },
    });

    await until(() => (scene.announce(""), scene.broker.published.length === 2), { what: "the second" });

    expect(published()).to.deep.equal(["first", "second"]);
  });

  it("reads nothing without a broker, leaves its share to others, and continues when there is one", async () => {
    await scene.work.addEvent();
    scene.broker.connected = false;
    let turns = 0;
    scene.broker.isConnected = () => {
      turns += 1;
      return scene.broker.connected;
    };

    start();
    await until(() => turns > 3, { what: "some turns" });
    expect(await scene.core.sql("SELECT name FROM svc.relays")).to.deep.equal([]);

    scene.broker.connected = true;
    await untilPublished(1);
  });

  describe("an event that cannot be presented", () => {
    it("delays no other, and goes out once the transform is repaired, after waits that double", async () => {
      let isBroken = true;
      let asked = 0;
      await addEvents(3);
      start({
        async present(_, events) {
          asked += events.filter(({ recordId }) => recordId === "2").length;
          return {
            kind: "each",
            answers: events.map(({ recordId, snapshot }) =>
              isBroken && recordId === "2" ? refused : presented(snapshot),
            ),
          };
        },
      });
      await untilPublished(2);
      expect(published()).to.deep.equal(["1", "3"]);

      for (const [waitMs, times] of [
        [1_000, 2],
        [2_000, 3],
      ] as const) {
        expect(asked).to.equal(times - 1);
        scene.skewMs += waitMs;
        await until(() => asked === times, { what: `try ${times}` });
        await untilTurns(2);
      }
      isBroken = false;
      scene.skewMs += 4_000;
      await untilPublished(3);
      expect(published()).to.deep.equal(["1", "3", "2"]);
    });

    describe("because it is too large for any message", () => {
      it("is not read when it is shown as captured, and tried again after five minutes", async () => {
        const shown: string[] = [];
        await addLarge("papers");
        await addEvents(2, "papers");
        start({
          present(resource, events) {
            shown.push(...events.map(({ recordId }) => recordId));
            return present(resource, events);
          },
        });
        await untilPublished(2);
        expect(await untilLine("relay.too_large")).to.deep.include({
          resource: "papers",
          most: 16 * 1024 ** 2,
        });

        scene.skewMs += 299_000;
        await untilTurns(3);
        expect(tooLarge()).to.equal(1);
        scene.skewMs += 1_000;
        await until(() => tooLarge() === 2, { what: "the next try" });
        expect(shown).to.deep.equal(["1", "2"]);
        expect(await scene.work.outbox()).to.have.length(3);
      });

      it("is read when a transform may make it smaller, and published when it does", async () => {
        scene.stoppedAtMs = performance.now();
        let most = 20_000_000;
        await addLarge("notes");
        start({
          present: async (_, events) => ({
            kind: "each",
            answers: events.map(({ snapshot }) =>
              presented({ text: String(snapshot["text"]).slice(0, most) }),
            ),
          }),
        });
        await untilLine("relay.too_large");

        for (const waitMs of [290_000, 9_000]) {
          scene.skewMs += waitMs;
          await untilTurns(3);
        }
        expect(tooLarge()).to.equal(1);
        most = 10;
        scene.skewMs += 1_000;
        await untilPublished(1);
        expect(published()).to.deep.equal(["large"]);
      });

      it("is not read above 32 MiB, with any transform, so that the others go out", async () => {
        await scene.work.addEvent({ recordId: "huge" });
        await scene.core.sql("UPDATE svc.outbox SET bytes = $1", [32 * 1024 ** 2 + 1]);
        await addEvents(2);
        const shown: string[] = [];
        start({
          present(resource, events) {
            shown.push(...events.map(({ recordId }) => recordId));
            return present(resource, events);
          },
        });
        await untilPublished(2);
        await untilLine("relay.too_large");

        expect(shown).to.deep.equal(["1", "2"]);
        expect(await scene.work.outbox()).to.have.length(3);
      });
    });

    it("waits when its resource is not in the mapping files, which the log reports", async () => {
      await scene.work.addEvent({ recordId: "9", resource: "strangers" });
      await addEvents(1);

      start();
      await untilPublished(1);

      expect(await untilLine("relay.unknown_resource")).to.include({ resource: "strangers" });
      expect(published()).to.deep.equal(["1"]);
      expect(await scene.work.outbox()).to.have.length(2);
    });

    it("makes its resource pause when 5,000 others wait for their retry, and is published in the end", async () => {
      const count = 7_000;
      const batchSize = 400;
      await addEvents(count);
      let isBroken = true;
      let refusals = 0;
      await fanOut();
      // All pauses take a second at least.
      let stoppedAtMs = performance.now() - scene.skewMs;
      const lastMs = stoppedAtMs + 900;
      scene.stoppedAtMs = stoppedAtMs;
      start({
        batchSize,
        present: async (_, events) => ({
          kind: "each",
          // Shows one of each read, so that the resource does not fail as a whole.
          answers: events.map(({ snapshot }, index) => {
            if (!isBroken || index === 0) return presented(snapshot);
            refusals += 1;
            return refused;
          }),
        }),
      });
      await until(
        () => {
          // Shown events use memory until they are fanned out.
          stoppedAtMs = Math.min(lastMs, stoppedAtMs + 10);
          scene.stoppedAtMs = stoppedAtMs;
          return refusals > 5_000;
        },
        { what: "5,000 failed events" },
      );
      await untilTurns(10);
      expect(refusals).to.be.at.most(5_000 + batchSize);

      isBroken = false;
      scene.stoppedAtMs = undefined;
      await until(
        () => {
          scene.skewMs += 200;
          return new Set(published()).size === count;
        },
        { what: "every event", timeoutMs: never },
      );
    });
  });

  it("publishes events again that the broker does not confirm", async () => {
    const first = await scene.work.addEvent({ recordId: "1" });
    await scene.work.addEvent({ recordId: "2" });
    scene.broker.refuses = ({ messageId }) => messageId === first.uuid;

    start();
    expect(await untilLine("relay.unconfirmed")).to.deep.include({ events: 1, eventUuids: [first.uuid] });

    scene.broker.refuses = () => false;
    scene.skewMs += 1_000;
    await untilPublished(3);
    expect(published()).to.deep.equal(["1", "2", "1"]);
  });

  it("publishes an event that failed also when the database fails at its retry", async () => {
    let [isAway, fails] = [false, 0];
    scene.broker.refuses = () => true;
    await addEvents(1);
    const { outbox } = scene;
    start({
      outbox: {
        ...outbox,
        async find(ids) {
          if (isAway) throw new Error(`away ${(fails += 1)}`);
          return outbox.find(ids);
        },
      },
    });
    await untilLine("relay.unconfirmed");
    isAway = true;
    scene.skewMs += 1_000;
    await until(() => fails === 1, { what: "a retry" });
    scene.broker.refuses = () => false;
    isAway = false;
    scene.skewMs += 2_000;

    await untilPublished(2);
  });

  it("forgets an event that failed and has left the outbox, which a crash may bring back", async () => {
    scene.broker.refuses = () => true;
    await addEvents(1);
    const [row] = await scene.core.sql("SELECT * FROM svc.outbox");
    start();
    await untilLine("relay.unconfirmed");
    await scene.core.sql("DELETE FROM svc.outbox");
    scene.broker.refuses = () => false;
    scene.skewMs += 1_000;
    await untilTurns(3);
    await bringBack(row);

    scene.skewMs += 301_000;

    await untilPublished(2);
  });

  it("reads all again once another session answers: a crash may have brought back an event", async () => {
    const { outbox } = scene;
    let session = "first";
    await addEvents(1);
    const [row] = await scene.core.sql("SELECT * FROM svc.outbox");
    await scene.core.sql("DELETE FROM svc.outbox");
    let reads = 0;
    start({
      outbox: {
        ...outbox,
        async read(options) {
          reads += 1;
          return { ...(await outbox.read(options)), session };
        },
      },
    });
    await until(() => reads > 2, { what: "some reads" });
    await bringBack(row);
    session = "second";

    await untilPublished(1);
  });
});
