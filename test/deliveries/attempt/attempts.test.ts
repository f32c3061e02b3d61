import { expect } from "chai";
import { exchanges, queues } from "../../../src/broker/topology.ts";
import { flightMsOf, type AttemptsOptions } from "../../../src/deliveries/attempt/attempts.ts";
import type { DeliveryInFlight } from "../../../src/deliveries/attempt/delivery-in-flight.ts";
import { signedHeaders } from "../../../src/deliveries/attempt/sign.ts";
import { createSecretBox } from "../../../src/subscriptions/secret.ts";
import { openSigning } from "../../../src/subscriptions/signing.ts";
import { createMetrics } from "../../../src/telemetry/metrics.ts";
import { useAttemptsScene } from "../../support/attempts-scene.ts";
import { until } from "../../support/wait.ts";
import { failure, success } from "../../support/work.ts";

describe("createAttempts", () => {
  const scene = useAttemptsScene();
  const { open, take, reserved, free, startAll, current } = scene;

  const attemptLines = (): readonly Record<string, unknown>[] =>
    scene.lines.filter(({ event }) => event === "delivery.attempt");

  it("posts the stored record, signed, records the success, and ends the flight", async () => {
    open(success);

    await startAll();
    await scene.attempts.drain();

    const [post, ...more] = scene.posts;
    expect(more).to.deep.equal([]);
    expect(post?.url).to.equal(scene.subscription.url);
    expect(Buffer.from(post?.body[1] ?? []).toString()).to.equal('{"text":"é","price":1.50}');
    expect(JSON.parse(Buffer.concat(post?.body ?? []).toString())).to.include({
      event: "on_create",
      resource: "notes",
      event_id: scene.delivery.eventUuid,
      delivery_id: scene.delivery.uuid,
    });
    const uuids = { eventUuid: scene.delivery.eventUuid, uuid: scene.delivery.uuid };
    expect(post?.headers).to.deep.equal(
      signedHeaders({
        signing: { secrets: ["sec_test"], headers: {} },
        body: post?.body ?? [],
        sentAt: new Date(Number(post?.headers["webhook-timestamp"]) * 1000),
        ...uuids,
      }),
    );
    expect(await current()).to.include({ status: "delivered", attempt: 1, lastError: null });
    expect(await scene.work.attemptsOf(scene.delivery.id)).to.have.length(1);
    expect(await scene.work.flights()).to.deep.equal([]);
    expect([scene.done, scene.freed, scene.queued]).to.deep.equal([[[scene.done[0]?.[0]]], 1, []]);
    expect(scene.done[0]?.[0]).to.include({ statusCode: 200 });
  });

  it("cancels a delivery whose record was erased, and posts nothing", async () => {
    open(success);
    await scene.core.sql("DELETE FROM svc.event_data");

    await startAll();
    await scene.attempts.drain();

    expect(scene.posts).to.deep.equal([]);
    expect(await current()).to.include({
      status: "cancelled",
      attempt: 0,
      lastError: "The record was erased.",
    });
    expect([scene.done, scene.freed, await scene.work.flights()]).to.deep.equal([[[undefined]], 1, []]);
  });

  it("posts no record of another event that has the row id of a lost one", async () => {
    open(success);
    const taken = await take();
    // As after a fail-over to a replica that lacks the last commits.
    await scene.core.sql("DELETE FROM svc.deliveries");
    await scene.core.sql("UPDATE svc.events SET uuid = gen_random_uuid()");

    for (const delivery of taken) scene.attempts.start(delivery, free);
    await scene.attempts.drain();

    expect(scene.posts).to.deep.equal([]);
  });

  it("posts the given record, without a query", async () => {
    open(success, { store: { ...scene.store, dataOf: () => expect.fail("asked") } });
    const [one] = await take();
    const data = Buffer.from('{"given":1}');

    scene.attempts.start({ ...(one as DeliveryInFlight), payload: { data } }, free);
    await scene.attempts.drain();

    expect(scene.posts[0]?.body[1]).to.equal(data);
    expect(await current()).to.include({ status: "delivered" });
  });

  it("plans the retry of a failure, tells when it is due, and ends the flight", async () => {
    open(failure);

    await startAll();
    await scene.attempts.drain();

    expect(await current()).to.include({
      status: "retrying",
      attempt: 1,
      lastError: "127.0.0.1:9 answered 500.",
    });
    const dueInMs = ((await scene.work.queued(scene.delivery.id))?.dueAt?.getTime() ?? 0) - Date.now();
    expect(dueInMs).to.be.within(50_000, 60_001);
    expect(scene.queued).to.deep.equal([60_000]);
    expect(await scene.work.flights()).to.deep.equal([]);
  });

  it("overwrites nothing and publishes no dead letter when another has made the attempt since", async () => {
    await scene.core.sql(
      "UPDATE svc.deliveries SET status = 'retrying', attempt = 2, last_error = 'refused'",
    );
    open(async () => {
      await scene.core.sql("UPDATE svc.deliveries SET attempt = 3, max_attempts = 4");
      return failure();
    });

    await startAll();
    await scene.attempts.drain();

    expect(attemptLines()[0]).to.include({ isWritten: false, status: "failed" });
    expect(await current()).to.include({ status: "retrying", attempt: 3 });
    expect(await scene.work.attemptsOf(scene.delivery.id)).to.deep.equal([]);
    expect(await scene.broker.depth(queues.dead)).to.equal(0);
    expect(scene.queued).to.deep.equal([]);
  });

  it("keeps `cancelled`, and the attempt, of a delivery that was cancelled during its POST", async () => {
    open(async () => {
      await scene.core.sql("UPDATE svc.deliveries SET status = 'cancelled', last_error = 'gone'");
      return failure();
    });

    await startAll();
    await scene.attempts.drain();

    expect(await current()).to.include({ status: "cancelled", lastError: "gone", attempt: 1 });
    expect(await scene.work.attemptsOf(scene.delivery.id)).to.have.length(1);
    expect(await scene.work.queued(scene.delivery.id)).to.equal(null);
  });

  describe("puts a delivery back into the queue, with no attempt counted, and frees its slot", () => {
    const inTwoSeconds: Readonly<Record<string, Partial<AttemptsOptions>>> = {
      "when the attempt could not be made": { send: async () => ({ kind: "unmade", reason: "no socket" }) },
      "when the POST fails for a fault of this process": { send: () => Promise.reject(new Error("a bug")) },
    };
    for (const [what, overrides] of Object.entries(inTwoSeconds)) {
      it(what, async () => {
        open(success, overrides);
        const beganAtMs = Date.now();

        await startAll();
        await scene.attempts.drain();

        expect(await current()).to.include({ status: "pending", attempt: 0 });
        const dueAtMs = (await scene.work.queued(scene.delivery.id))?.dueAt?.getTime();
        expect(dueAtMs).to.be.within(beganAtMs + 1_999, Date.now() + 2_001);
        expect([scene.done, scene.freed, scene.queued]).to.deep.equal([[[undefined]], 1, [2_000]]);
        expect(await scene.work.flights()).to.deep.equal([]);
      });
    }

    it("to wait for a slot, when none falls free", async () => {
      open(success);

      await startAll(reserved(({ giveUp }) => giveUp("busy")));
      await scene.attempts.drain();

      expect(await scene.work.queued(scene.delivery.id)).to.include({ dueAt: null });
      expect([scene.posts, scene.queued]).to.deep.equal([[], [undefined]]);
      expect(await scene.work.flights()).to.deep.equal([]);
    });
  });

  it("logs unsigned deliveries once a second, with their number and the known keys", async () => {
    for (let count = 1; count < 3; count += 1) await scene.work.addDelivery(scene.subscription);
    const wrong = createSecretBox(Buffer.alloc(32, 8));
    open(success, { openSigning: (sealed) => openSigning(wrong, sealed, 0) });

    await startAll();
    await scene.attempts.drain();
    await until(() => scene.lines.length > 0, { what: "the report" });

    const [line, ...more] = scene.lines;
    expect(more).to.deep.equal([]);
    expect(line).to.include({
      level: 50,
      event: "delivery.unsigned",
      deliveries: 3,
      subscriptionId: scene.subscription.id,
    });
    expect(line?.["reason"]).to.match(/another key \(id [0-9a-f]{8}\) than the secret key in use/);
  });

  it("takes no slot for an unsigned delivery, counts it, and tries it again after 30 s", async () => {
    const wrong = createSecretBox(Buffer.alloc(32, 8));
    const postponed: string[] = [];
    open(success, {
      openSigning: (sealed) => openSigning(wrong, sealed, 0),
      metrics: {
        ...createMetrics().deliveries,
        postponed: (reason) => void postponed.push(reason),
      },
    });

    await startAll();
    await scene.attempts.drain();

    expect([scene.left, scene.done, scene.freed, scene.posts]).to.deep.equal([1, [], 1, []]);
    expect(await current()).to.include({ status: "pending", attempt: 0 });
    expect([scene.queued, postponed]).to.deep.equal([[30_000], ["unsigned"]]);
    expect(await scene.work.flights()).to.deep.equal([]);
  });

  it("announces a delivery that only other dispatchers may attempt, once it is in the queue", async () => {
    const told: unknown[] = [];
    open(success, {
      announce(deliveries) {
        for (const { uuid } of deliveries) told.push([uuid, scene.queued.length]);
      },
    });
    const [one] = (await take()) as [DeliveryInFlight];

    scene.attempts.putBack(one, { id: one.id, delayMs: undefined, uuidForOthers: one.uuid });
    expect(told).to.deep.equal([]);
    await scene.attempts.drain();

    expect(told).to.deep.equal([[one.uuid, 1]]);
    expect(await scene.work.queued(scene.delivery.id)).to.include({ dueAt: null });
  });

  it("writes an outcome without an attempt", async () => {
    open(success);
    const [one] = (await take()) as [DeliveryInFlight];
    const { id, uuid } = one;

    const outcome = { id, uuid, attemptsBefore: 0, status: "cancelled", lastError: "no right" } as const;
    await scene.attempts.settle(one, outcome);

    expect(await current()).to.include({ status: "cancelled", attempt: 0, lastError: "no right" });
    expect(await scene.work.flights()).to.deep.equal([]);
  });

  describe("after the last attempt", () => {
    beforeEach(() =>
      scene.core.sql("UPDATE svc.deliveries SET status = 'retrying', attempt = 2, last_error = 'refused'"),
    );

    it("publishes the payload on svc.dead, counts it, and notes that it did", async () => {
      const counted: unknown[] = [];
      open(failure, {
        metrics: {
          ...createMetrics().deliveries,
          failed: () => void counted.push("failed"),
          deadLettered: (...given) => void counted.push(given),
        },
      });

      await startAll();
      await scene.attempts.drain();

      const row = await current();
      expect(row).to.include({ status: "failed", attempt: 3 });
      expect(row.deadLetteredAt).to.be.instanceOf(Date);
      expect(counted).to.deep.equal(["failed", ["spent", 1]]);
      const dead = scene.broker.published.at(-1);
      expect(dead).to.deep.include({ exchange: exchanges.dead, messageId: scene.delivery.uuid });
      expect(dead?.body).to.deep.equal(Buffer.concat(scene.posts[0]?.body ?? []));
      expect(dead?.headers).to.include({ "x-svc-reason": "127.0.0.1:9 answered 500." });
    });

    it("publishes none of a delivery that was cancelled during it, whose record may be erased", async () => {
      open(async () => {
        await scene.core.sql("UPDATE svc.deliveries SET status = 'cancelled', last_error = 'gone'");
        return failure();
      });

      await startAll();
      await scene.attempts.drain();

      expect(await current()).to.include({ status: "cancelled", attempt: 3, deadLetteredAt: null });
      expect(scene.broker.published).to.deep.equal([]);
    });

    it("leaves an unconfirmed dead letter to the sweep", async () => {
      scene.broker.refuses = ({ exchange }) => exchange === exchanges.dead;
      open(failure);

      await startAll();
      await scene.attempts.drain();

      expect(await current()).to.include({ status: "failed", deadLetteredAt: null });
    });
  });

  it("has a flight last for the POST and fifteen seconds", () => {
    expect(flightMsOf(10_000)).to.equal(25_000);
  });
});
