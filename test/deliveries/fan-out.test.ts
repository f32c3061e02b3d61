import { expect } from "chai";
import { exchanges } from "../../src/broker/topology.ts";
import type { DeliveryInFlight } from "../../src/deliveries/attempt/delivery-in-flight.ts";
import { deliveryUuidOf } from "../../src/deliveries/delivery-uuid.ts";
import { messageOf, useFanOutScene } from "../support/fan-out-scene.ts";
import { notesEligibility } from "../support/notes-eligibility.ts";
import { until } from "../support/wait.ts";

describe("createFanOut", () => {
  const scene = useFanOutScene();
  const { start, otherMessages, untilTurns, addEvents } = scene;

  it("makes one delivery for each subscription that matches, and begins to attempt it in one flight", async () => {
    const second = await scene.work.addSubscription({ userId: scene.subscription.userId });
    await scene.work.addSubscription();
    await scene.work.addSubscription({ userId: scene.subscription.userId, events: ["on_delete"] });
    start();

    await scene.broker.publish([messageOf(scene.event)]);
    await untilTurns(1);

    const rows = (await scene.work.deliveries()).toSorted(
      (one, other) => one.subscriptionId - other.subscriptionId,
    );
    expect(rows.map(({ subscriptionId }) => subscriptionId)).to.deep.equal([
      scene.subscription.id,
      second.id,
    ]);
    expect(rows.map(({ uuid }) => uuid)).to.deep.equal(
      [scene.subscription, second].map(({ id }) => deliveryUuidOf(scene.event.uuid, id)),
    );
    expect(rows[0]).to.include({ maxAttempts: 4, url: scene.subscription.url, eventUuid: scene.event.uuid });
    expect(await scene.work.outbox()).to.deep.equal([]);
    const [one, ...more] = scene.started.toSorted(
      (first, other) => first.subscriptionId - other.subscriptionId,
    );
    expect(more).to.have.length(1);
    const { flight, payload, happenedAtMs, subscription: target, ...rest } = one as DeliveryInFlight;
    expect(rest).to.deep.equal({
      id: String(rows[0]?.id),
      uuid: rows[0]?.uuid,
      eventId: String(scene.event.id),
      eventUuid: scene.event.uuid,
      event: "on_create",
      resource: "notes",
      timestamp: "2026-03-28T14:30:00.123456Z",
      attempt: 0,
      maxAttempts: 4,
      isPaced: false,
      trigger: "scheduled",
      traceparent: null,
      hasPrevious: false,
      subscriptionId: scene.subscription.id,
    });
    expect(target.url).to.equal(scene.subscription.url);
    expect(target.signing).to.deep.equal({
      encryptedSecret: Buffer.from(scene.subscription.encryptedSecret),
      encryptedPrevious: null,
      encryptedHeaders: null,
    });
    expect(target.user).to.include({ id: scene.subscription.userId, name: "Ada", isAdmin: false });
    expect(String(payload?.data)).to.equal('{"text":"é"}');
    const ageMs = Date.now() - Date.parse("2026-03-28T14:30:00.123Z");
    expect(performance.now() - happenedAtMs).to.be.closeTo(ageMs, 10_000);
    const [row, ...flights] = await scene.work.flights();
    expect(flights).to.deep.equal([]);
    expect(flight).to.deep.include({ id: String(row?.id), unwritten: 2 });
    expect(more[0]?.flight).to.equal(flight);
    expect(otherMessages()).to.deep.equal([]);
    expect(scene.admission.asked[0]).to.deep.equal({
      userId: scene.subscription.userId,
      url: scene.subscription.url,
      lane: "first",
      bytes: 13,
      isUrgent: false,
    });
  });

  it("leaves deliveries without a slot to the queue, and announces them", async () => {
    const busy = await scene.work.addSubscription({
      userId: scene.subscription.userId,
      url: "http://127.0.0.1:9/busy",
    });
    scene.admission.refuses = ({ url }) => (url === busy.url ? "busy" : undefined);
    start();

    await scene.broker.publish([messageOf(scene.event)]);
    await untilTurns(1);

    const rows = await scene.work.deliveries();
    const [taken, waiting] = [scene.subscription, busy].map(({ id }) =>
      rows.find(({ subscriptionId }) => subscriptionId === id),
    );
    expect(scene.started.map(({ id }) => id)).to.deep.equal([String(taken?.id)]);
    expect(scene.started[0]?.flight.unwritten).to.equal(1);
    expect((await scene.work.flights())[0]?.deliveryIds).to.deep.equal([taken?.id]);
    expect(await scene.work.queued(taken?.id ?? 0n)).to.equal(null);
    expect(await scene.work.queued(waiting?.id ?? 0n)).to.include({ dueAt: null });
    expect(scene.parked).to.equal(1);
    expect(otherMessages().map(({ exchange, routingKey, messageId }) => [exchange, routingKey, messageId]))
      .to //
      .deep.equal([[exchanges.deliveries, "first", waiting?.uuid]]);
  });

  it("announces no more than four waiting deliveries", async () => {
    scene.admission.refuses = () => "busy";
    const events = [scene.event, ...(await addEvents(9))];
    start();

    await scene.broker.publish(events.map(messageOf));
    const turns = (): readonly number[] =>
      scene.lines.flatMap((line) => (line["event"] === "fan_out.turn" ? [Number(line["waiting"])] : []));
    await until(() => turns().reduce((sum, count) => sum + count, 0) === 10, { what: "all to wait" });

    const mostOfEach = turns().map((count) => Math.min(count, 4));
    expect(otherMessages()).to.have.length(mostOfEach.reduce((sum, count) => sum + count, 0));
    expect(Math.max(...turns())).to.be.above(4);
    expect(scene.started).to.deep.equal([]);
  });

  it("makes batches of at most 100 deliveries, so that others wait for little", async () => {
    for (let count = 0; count < 19; count++)
      await scene.work.addSubscription({ userId: scene.subscription.userId });
    const stranger = await scene.work.addUser({ email: "stranger@example.com", isAdmin: false });
    const first = await scene.work.addEvent({ ownerId: String(stranger.id) });
    const second = await scene.work.addEvent({ ownerId: String(stranger.id) });
    const events = await addEvents(30);
    start();
    // An owner whose events made no delivery must not count as one with events of no cost.
    await scene.broker.publish([first, ...events.slice(0, 1)].map(messageOf));
    await until(() => scene.started.length === 20, { what: "the first deliveries" });
    await scene.broker.publish([second, ...events.slice(1)].map(messageOf));
    await until(() => scene.started.length === 600, { what: "the deliveries" });

    const sizes = scene.lines
      .filter(({ event: name }) => name === "fan_out.turn")
      .map(({ deliveries }) => deliveries as number);
    // An event of an unknown owner has a batch of its own.
    expect(sizes.find((size) => size > 0)).to.equal(20);
    expect(Math.max(...sizes)).to.be.within(60, 100);
  });

  it("writes one log line for each turn, with its events and its duration", async () => {
    start();

    await scene.broker.publish([messageOf(scene.event)]);
    await untilTurns(1);

    const turn = scene.lines.find(({ event: name }) => name === "fan_out.turn");
    expect(turn).to.deep.include({
      events: 1,
      deliveries: 1,
      waiting: 0,
      resources: ["notes"],
      eventUuids: [scene.event.uuid],
    });
    expect(turn?.["durationMs"]).to.be.within(0, 10_000);
  });

  it("removes an event without subscribers from the outbox", async () => {
    await scene.core.sql("DELETE FROM svc.subscriptions");
    start();

    await scene.broker.publish([messageOf(scene.event)]);
    await untilTurns(1);

    expect(await scene.work.outbox()).to.deep.equal([]);
    expect(await scene.work.flights()).to.deep.equal([]);
    expect(await scene.core.sql("SELECT FROM svc.event_data")).to.deep.equal([]);
  });

  it("writes the deliveries of many subscriptions in portions, each its flight, and the event's end with the last", async () => {
    await scene.core.sql(
      `INSERT INTO svc.subscriptions (user_id, url, resource, events, encrypted_secret, secret_hint)
       SELECT user_id, url || n, resource, events, encrypted_secret, secret_hint FROM svc.subscriptions CROSS JOIN generate_series(1, 1100) AS n`,
    );
    const inserts: [number, boolean, boolean][] = [];
    start({
      store: {
        async insert(options) {
          const answer = await scene.store.insert(options);
          const isThere = (await scene.work.outbox()).length > 0;
          inserts.push([options.deliveries.length, options.isComplete, isThere]);
          return answer;
        },
      },
    });

    await scene.broker.publish([messageOf(scene.event)]);
    await untilTurns(1);

    expect(inserts).to.deep.equal([
      [500, false, true],
      [500, false, true],
      [101, true, false],
    ]);
    expect(new Set(scene.started.map(({ id }) => id)).size).to.equal(1_101);
    expect((await scene.work.flights()).map(({ deliveryIds }) => deliveryIds.length)).to.have.members([
      500, 500, 101,
    ]);
  });

  it("lets the events of other resources pass those of a slow one", async () => {
    const slow = await addEvents(30);
    const slowIds = new Set(slow.map(({ id }) => String(id)));
    let open: (() => void) | undefined;
    const gate = new Promise<void>((resolve) => (open = resolve));
    start({
      eligibility: { ...notesEligibility(), isCostly: (resource) => resource === "slow" },
      subscribers: {
        findKnown: async () => undefined,
        async find(events) {
          if (events.some(({ id }) => slowIds.has(id))) await gate;
          return events.map(() => []);
        },
        forget: () => undefined,
      },
    });

    await scene.broker.publish(slow.map((event) => ({ ...messageOf(event), routingKey: "slow.on_create" })));
    await scene.broker.publish([messageOf(scene.event)]);
    await until(async () => !(await scene.work.outbox()).includes(scene.event.id), {
      what: "the other event",
    });
    const waiting = await scene.work.outbox();
    open?.();
    await until(async () => (await scene.work.outbox()).length === 0, { what: "the costly events" });

    expect(waiting).to.have.length(30);
  });
});
