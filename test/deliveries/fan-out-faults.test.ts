import { randomUUID } from "node:crypto";
import { expect } from "chai";
import type { OutgoingMessage } from "../../src/broker/broker.ts";
import { exchanges, queues } from "../../src/broker/topology.ts";
import type { EventModel } from "../support/generated/models.ts";
import { messageOf, useFanOutScene } from "../support/fan-out-scene.ts";
import { notesEligibility } from "../support/notes-eligibility.ts";
import { until } from "../support/wait.ts";

const foreignMessage: OutgoingMessage = {
  exchange: exchanges.events,
  routingKey: "x",
  messageId: "theirs",
  body: Buffer.from("what is this?"),
};

// Events that come twice or fail, and messages that are no events; fan-out.test.ts has the rest.
describe("createFanOut", () => {
  const scene = useFanOutScene();
  const { start, otherMessages, untilTurns, addEvents } = scene;

  const untilFailed = (): Promise<unknown> =>
    until(() => scene.lines.some(({ msg }) => msg === "fan-out turn failed; giving the events back"), {
      what: "a failed turn",
    });

  it("makes one delivery with one attempt of an event that is repeated, and keeps no slot for the others", async () => {
    start();
    await scene.broker.publish([messageOf(scene.event), messageOf(scene.event)]);
    await untilTurns(1);

    await scene.broker.publish([messageOf(scene.event)]);
    await untilTurns(2);

    expect(await scene.work.deliveries()).to.have.length(1);
    expect(scene.started).to.have.length(1);
    expect(scene.admission.held).to.equal(1);
    expect(scene.started[0]?.flight.unwritten).to.equal(1);
  });

  it("counts a repeated event once, and each of those beside it", async () => {
    const counts: unknown[] = [];
    const other = await scene.work.addEvent();
    start({
      metrics: { fannedOut: (count) => counts.push(count), deadLettered: () => undefined },
    });
    await scene.broker.publish([messageOf(scene.event)]);
    await untilTurns(1);

    await scene.broker.publish([messageOf(scene.event), messageOf(other)]);
    await untilTurns(2);

    expect(counts).to.deep.equal([
      { events: 1, deliveries: 1 },
      { events: 1, deliveries: 0 },
    ]);
  });

  it("makes nothing of an event that is not in the outbox", async () => {
    start();

    await scene.broker.publish([
      messageOf({ id: 9_000_000n, uuid: randomUUID(), ownerId: scene.event.ownerId }),
    ]);
    await untilTurns(1);

    expect(await scene.work.deliveries()).to.deep.equal([]);
    expect(scene.admission.held).to.equal(0);
    expect(await scene.broker.depth(queues.fanout)).to.equal(0);
  });

  it("leaves an event with an unknown resource in the outbox, and continues with the others", async () => {
    const [other] = await addEvents(1);
    const unknown = await scene.work.addEvent({ resource: "later" });
    start();

    await scene.broker.publish([messageOf(unknown), messageOf(other as EventModel)]);
    await untilTurns(1);
    await scene.stop();

    expect(await scene.work.outbox()).to.deep.equal([scene.event.id, unknown.id]);
    expect((await scene.work.deliveries()).map(({ eventId }) => eventId)).to.deep.equal([other?.id]);
    expect(await scene.broker.depth(queues.fanout)).to.equal(0);
    expect(scene.lines.find(({ event }) => event === "fan_out.unknown_resource")).to.include({ events: 1 });
  });

  describe("with a fault", () => {
    it("takes no events while the database is down, which others have", async () => {
      const events = [scene.event, ...(await addEvents(4))];
      let isAway = true;
      let tries = 0;
      start({
        store: {
          async insert(insertion) {
            tries += 1;
            if (isAway) throw Object.assign(new Error("cut"), { code: "ECONNREFUSED" });
            return scene.store.insert(insertion);
          },
        },
      });
      await scene.broker.publish(events.slice(0, 2).map(messageOf));
      await until(() => tries >= 3, { what: "two more statements" });
      await scene.broker.publish(events.slice(2).map(messageOf));
      const before = tries;
      await until(() => tries >= before + 2, { what: "two more statements" });
      expect(await scene.broker.depth(queues.fanout)).to.equal(5);

      isAway = false;

      await until(() => scene.started.length === 5, { what: "every attempt" });
    });

    it("returns the events that wait behind a batch that the database does not answer", async () => {
      const events = [scene.event, ...(await addEvents(4))];
      let isAnswered = false;
      start({
        store: {
          async insert(insertion) {
            await until(() => isAnswered, { what: "the answer", timeoutMs: 30_000 });
            return scene.store.insert(insertion);
          },
        },
      });
      await scene.broker.publish(events.slice(0, 1).map(messageOf));
      await until(() => scene.admission.held === 1, { what: "the first event" });
      await scene.broker.publish(events.slice(1).map(messageOf));

      const untilReady = (count: number): Promise<unknown> =>
        until(async () => (await scene.broker.depth(queues.fanout)) === count, { what: `${count} others` });
      await untilReady(0);

      await untilReady(4);
      isAnswered = true;

      await until(() => scene.started.length === 5, { what: "every attempt" });
    });

    it("continues after the database was down, beside a costly batch that takes long", async () => {
      const costly = await scene.work.addEvent({ resource: "papers" });
      let isAway = false;
      let hasEnded = false;
      start({
        isKnown: () => true,
        eligibility: { ...notesEligibility(), isCostly: (resource) => resource === "papers" },
        store: {
          async insert(insertion) {
            if (insertion.events[0]?.uuid === costly.uuid)
              await until(() => hasEnded, { what: "the end", timeoutMs: 30_000 });
            else if (isAway) throw Object.assign(new Error("cut"), { code: "ECONNREFUSED" });
            return scene.store.insert(insertion);
          },
        },
      });
      await scene.broker.publish([messageOf({ ...costly, resource: "papers" })]);
      await until(async () => (await scene.broker.depth(queues.fanout)) === 0, { what: "the batch" });
      isAway = true;
      await scene.broker.publish([messageOf(scene.event)]);
      await untilFailed();
      isAway = false;

      await until(() => scene.started.length === 1, { what: "the attempt" });
      expect(await scene.work.outbox()).to.deep.equal([costly.id]);
      hasEnded = true;
    });

    it("returns the events while the database is down, with their slots, and loses none", async () => {
      const events = [scene.event, ...(await addEvents(4))];
      let isAway = true;
      start({
        store: {
          insert: (options) =>
            isAway
              ? Promise.reject(Object.assign(new Error("cut"), { code: "ECONNREFUSED" }))
              : scene.store.insert(options),
        },
      });
      await scene.broker.publish(events.map(messageOf));
      await untilFailed();
      expect([scene.admission.held, scene.started.length]).to.deep.equal([0, 0]);

      isAway = false;

      await until(async () => (await scene.work.deliveries()).length === 5, {
        what: "a delivery for every event",
      });
      await until(() => scene.started.length === 5, { what: "every attempt" });
      expect(scene.admission.held).to.equal(5);
    });

    it("leaves an update in the outbox while the readers of its old row cannot be decided", async () => {
      let verdict: boolean | undefined;
      const judge = async (pairs: readonly unknown[]): Promise<readonly (boolean | undefined)[]> =>
        pairs.map(() => verdict);
      start({ eligibility: { ...notesEligibility(), judge } });
      const update = messageOf({ ...scene.event, previous: { text: "before" } });

      await scene.broker.publish([update]);
      await until(() => scene.lines.some(({ eventUuid }) => eventUuid === scene.event.uuid), {
        what: "the line of the event",
      });
      expect(await scene.work.outbox()).to.deep.equal([scene.event.id]);
      expect(await scene.work.deliveries()).to.deep.equal([]);

      verdict = true;
      await scene.broker.publish([update]);
      await until(() => scene.started.length === 1, { what: "the attempt" });
      expect(scene.started[0]?.hasPrevious).to.equal(true);
    });

    it("halves a batch until the failing event is alone, which stays in the outbox, and fans out the others once", async () => {
      const others = await addEvents(6);
      const bad = others[3] as EventModel;
      start({
        store: {
          async insert(options) {
            if (options.events.some(({ id }) => id === String(bad.id))) throw new Error("cannot be written");
            return scene.store.insert(options);
          },
        },
      });

      await scene.broker.publish([scene.event, ...others].map(messageOf));
      await until(() => scene.lines.some(({ eventUuid }) => eventUuid === bad.uuid), {
        what: "the line of the bad one",
      });
      await until(() => scene.started.length === 6, { what: "the others" });
      await scene.stop();

      expect(await scene.work.outbox()).to.deep.equal([bad.id]);
      expect(await scene.work.deliveries()).to.have.length(6);
      expect(scene.admission.held).to.equal(6);
      // The relay publishes it again.
      expect(await scene.broker.depth(queues.fanout)).to.equal(0);
    });

    for (const code of ["57014", "53200"])
      it(`halves a batch that is too much for one statement (${code}), and fans out all`, async () => {
        const others = await addEvents(4);
        start({
          store: {
            async insert(options) {
              if (options.events.length > 1) throw Object.assign(new Error("too much"), { code });
              return scene.store.insert(options);
            },
          },
        });

        await scene.broker.publish([scene.event, ...others].map(messageOf));

        await until(() => scene.started.length === 5, { what: "every attempt" });
      });

    it("continues after a batch that failed half-way, and attempts none twice", async () => {
      await scene.core.sql(
        `INSERT INTO svc.subscriptions (user_id, url, resource, events, encrypted_secret, secret_hint)
         SELECT user_id, url || n, resource, events, encrypted_secret, secret_hint FROM svc.subscriptions CROSS JOIN generate_series(1, 600) AS n`,
      );
      let inserts = 0;
      start({
        store: {
          async insert(options) {
            inserts += 1;
            if (inserts === 2) throw Object.assign(new Error("cut"), { code: "ECONNREFUSED" });
            return scene.store.insert(options);
          },
        },
      });

      await scene.broker.publish([messageOf(scene.event)]);
      await untilFailed();
      expect([scene.started.length, scene.admission.held]).to.deep.equal([500, 500]);
      await until(() => scene.started.length === 601, { what: "every attempt" });

      expect(new Set(scene.started.map(({ id }) => id)).size).to.equal(601);
      // All send the record that was stored first. The second message may have another.
      expect(scene.started.slice(500).filter(({ payload }) => payload !== undefined)).to.deep.equal([]);
      expect(await scene.work.deliveries()).to.have.length(601);
      expect(await scene.work.outbox()).to.deep.equal([]);
      expect(scene.admission.held).to.equal(601);
    });
  });

  it("sends the record that another fan-out has stored, even when none of its deliveries is left", async () => {
    const earlier = 'INSERT INTO svc.event_data (event_id, data) VALUES ($1, \'{"text":"e"}\')';
    await scene.core.sql(earlier, [scene.event.id]);
    const [other] = await addEvents(1);
    start();

    await scene.broker.publish([scene.event, other as EventModel].map(messageOf));
    await until(() => scene.started.length === 2, { what: "both attempts" });

    const own = scene.started.filter(({ payload }) => payload !== undefined);
    expect(own.map(({ eventUuid }) => eventUuid)).to.deep.equal([other?.uuid]);
  });

  for (const [what, message] of [
    ["a message that is no event", () => foreignMessage],
    [
      "an event with somebody else's seal",
      () => ({
        ...messageOf(scene.event),
        headers: { "x-svc-id": String(scene.event.id), "x-svc-data": "0:1", "x-svc-seal": "AAAA" },
      }),
    ],
  ] as const) {
    it(`moves ${what} to svc.dead unchanged, and continues with the others`, async () => {
      const [other] = await addEvents(1);
      const foreign = message();
      start();

      await scene.broker.publish([foreign, messageOf(other as EventModel)]);
      await untilTurns(1);
      await scene.stop();

      const [dead] = otherMessages();
      expect(dead).to.include({ exchange: exchanges.dead, messageId: foreign.messageId, body: foreign.body });
      expect(dead?.headers).to.deep.equal({ "x-svc-reason": "not an event of this service" });
      expect((await scene.work.deliveries()).map(({ eventUuid }) => eventUuid)).to.deep.equal([other?.uuid]);
      expect(await scene.work.outbox()).to.deep.equal([scene.event.id]);
      expect(await scene.broker.depth(queues.fanout)).to.equal(0);
    });
  }

  it("continues with the others while the broker does not confirm a foreign message", async () => {
    const never = new Promise<never>(() => undefined);
    start({
      broker: {
        ...scene.broker,
        publish: (messages) =>
          messages.some(({ exchange }) => exchange === exchanges.dead)
            ? never
            : scene.broker.publish(messages),
      },
    });

    await scene.broker.publish([foreignMessage, messageOf(scene.event)]);
    await until(() => scene.started.length === 1, { what: "the attempt" });
  });

  it("requeues a foreign message while svc.dead does not confirm it", async () => {
    scene.broker.refuses = ({ exchange }) => exchange === exchanges.dead;
    start();
    await scene.broker.publish([foreignMessage]);
    await until(() => otherMessages().length > 0, { what: "the try" });

    scene.broker.refuses = () => false;

    await until(async () => (await scene.broker.depth(queues.dead)) === 1, { what: "the dead letter" });
  });

  it("finishes its messages on stop, and takes no more", async () => {
    start();
    await scene.broker.publish([messageOf(scene.event)]);
    await until(async () => (await scene.broker.depth(queues.fanout)) === 0, { what: "the message taken" });

    await scene.stop();
    await scene.broker.publish([messageOf(scene.event)]);

    expect(await scene.work.outbox()).to.deep.equal([]);
    expect(scene.started).to.have.length(1);
    expect(await scene.broker.depth(queues.fanout)).to.equal(1);
  });
});
