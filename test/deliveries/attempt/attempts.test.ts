import { expect } from "chai";
import { exchanges, queues } from "../../../src/broker/topology.ts";
import type { DeliveryModel, SubscriptionModel } from "../../../src/db/generated/models.ts";
import type { Done, Place } from "../../../src/deliveries/admission/admission.ts";
import {
  createAttempts,
  flightMsOf,
  type Attempts,
  type AttemptsOptions,
  type DeliveryInFlight,
} from "../../../src/deliveries/attempt/attempts.ts";
import type { AttemptResult } from "../../../src/deliveries/delivery.ts";
import type { Flight } from "../../../src/deliveries/flights.ts";
import { signedHeaders } from "../../../src/deliveries/attempt/sign.ts";
import { createDeliveryStore, type DeliveryStore } from "../../../src/deliveries/store.ts";
import { createMetrics } from "../../../src/telemetry/metrics.ts";
import { runWorkers, type Running } from "../../../src/app/workers.ts";
import { createSecretBox } from "../../../src/subscriptions/secret.ts";
import { openCoreDatabase, type CoreDatabase } from "../../support/core-database.ts";
import { createMemoryLog } from "../../support/http.ts";
import { createWatchedBroker, type WatchedBroker } from "../../support/watched-broker.ts";
import { createWork, failure, secretBox, success, type Work } from "../../support/work.ts";

type Post = Parameters<AttemptsOptions["send"]>[0];
type Visit = Parameters<Place["enter"]>[0];

describe("createAttempts", () => {
  let core: CoreDatabase;
  let work: Work;
  let store: DeliveryStore;
  let broker: WatchedBroker;
  let running: Running | undefined;
  let lines: Record<string, unknown>[];
  let subscription: SubscriptionModel;
  let delivery: DeliveryModel;
  let attempts: Attempts;
  let posts: Post[];
  let queued: (number | undefined)[];
  let done: Parameters<Done>[];
  let freed: number;
  let left: number;

  before(async () => {
    core = await openCoreDatabase();
    work = createWork(core.database.prisma);
    store = createDeliveryStore({ sql: core.sql });
  });

  beforeEach(async () => {
    await work.clear();
    subscription = await work.addSubscription();
    delivery = await work.addDelivery(subscription, { data: '{"text":"é","price":1.50}' });
    broker = createWatchedBroker();
    running = undefined;
    posts = [];
    queued = [];
    done = [];
    freed = left = 0;
  });

  afterEach(async () => {
    await running?.stop();
    await broker.close();
  });

  after(() => core.close());

  function open(
    answer: (post: Post) => AttemptResult | Promise<AttemptResult>,
    overrides: Partial<AttemptsOptions> = {},
  ): void {
    const memory = createMemoryLog();
    lines = memory.lines;
    attempts = createAttempts({
      broker,
      store,
      async send(post) {
        posts.push(post);
        return { kind: "made", result: await answer(post) };
      },
      decryptSecret: (sealed) => secretBox.decrypt(sealed),
      scheduleOf: () => ({ maxAttempts: 3, backoffMs: [60_000] }),
      jitter: 0,
      metrics: createMetrics().deliveries,
      log: memory.log,
      onQueued: (delayMs) => queued.push(delayMs),
      onFree: () => (freed += 1),
      random: () => 0.5,
      ...overrides,
    });
    running = runWorkers({ workers: [attempts], log: memory.log });
  }

  /** Takes what is due, all in one flight. */
  async function take(): Promise<readonly DeliveryInFlight[]> {
    const { flightId, deliveries } = await store.takeDue({
      limit: 100,
      flightMs: 60_000,
      sinceMs: undefined,
    });
    const flight: Flight = { id: flightId ?? "", unwritten: deliveries.length };
    return deliveries.map((taken) => ({
      ...taken,
      subscription: taken.subscription as DeliveryInFlight["subscription"],
      happenedAtMs: performance.now(),
      data: undefined,
      flight,
    }));
  }

  const place = (enter: (visit: Visit) => void): Place => ({ enter, leave: () => (left += 1) });
  /** A slot at once. */
  const free = place(({ begin }) => begin((...result) => done.push(result)));

  async function startAll(at: Place = free): Promise<void> {
    for (const one of await take()) attempts.start(one, at);
  }

  const current = (): Promise<DeliveryModel> => work.deliveryOf(delivery.id);
  const attemptLines = (): readonly Record<string, unknown>[] =>
    lines.filter(({ event }) => event === "delivery.attempt");

  it("posts the stored record, signed, records the success, and ends the flight", async () => {
    open(success);

    await startAll();
    await attempts.drain();

    const [post, ...more] = posts;
    expect(more).to.deep.equal([]);
    expect(post?.url).to.equal(subscription.url);
    expect(Buffer.from(post?.body[1] ?? []).toString()).to.equal('{"text":"é","price":1.50}');
    expect(JSON.parse(Buffer.concat(post?.body ?? []).toString())).to.include({
      event: "on_create",
      resource: "notes",
      event_id: delivery.eventUuid,
      delivery_id: delivery.uuid,
    });
    const uuids = { eventUuid: delivery.eventUuid, deliveryUuid: delivery.uuid };
    expect(post?.headers).to.deep.equal(
      signedHeaders({ secret: "sec_test", body: post?.body ?? [], ...uuids }),
    );
    expect(await current()).to.include({ status: "delivered", attempt: 1, lastError: null });
    expect(await work.attemptsOf(delivery.id)).to.have.length(1);
    expect(await work.flights()).to.deep.equal([]);
    expect([done, freed, queued]).to.deep.equal([[[done[0]?.[0]]], 1, []]);
    expect(done[0]?.[0]).to.include({ statusCode: 200 });
  });

  it("posts the record that it is given, without a question to the database", async () => {
    open(success, { store: { ...store, dataOf: () => expect.fail("asked") } });
    const [one] = await take();
    const data = Buffer.from('{"given":1}');

    attempts.start({ ...(one as DeliveryInFlight), data }, free);
    await attempts.drain();

    expect(posts[0]?.body[1]).to.equal(data);
    expect(await current()).to.include({ status: "delivered" });
  });

  it("plans the retry of a failure, tells when it is due, and ends the flight", async () => {
    open(failure);

    await startAll();
    await attempts.drain();

    expect(await current()).to.include({
      status: "retrying",
      attempt: 1,
      lastError: "127.0.0.1:9 answered 500.",
    });
    const dueInMs = ((await work.queued(delivery.id))?.dueAt?.getTime() ?? 0) - Date.now();
    expect(dueInMs).to.be.within(50_000, 60_001);
    expect(queued).to.deep.equal([60_000]);
    expect(await work.flights()).to.deep.equal([]);
  });

  it("overwrites and buries nothing when another has made the attempt since", async () => {
    await core.sql("UPDATE svc.deliveries SET attempt = 2");
    open(async () => {
      await core.sql("UPDATE svc.deliveries SET attempt = 3");
      return failure();
    });

    await startAll();
    await attempts.drain();

    expect(attemptLines()[0]).to.include({ isWritten: false, status: "failed" });
    expect(await current()).to.include({ status: "pending", attempt: 3 });
    expect(await work.attemptsOf(delivery.id)).to.deep.equal([]);
    expect(await broker.depth(queues.dead)).to.equal(0);
    expect(queued).to.deep.equal([]);
  });

  it("keeps `cancelled`, and the attempt, of a delivery that was cancelled during its POST", async () => {
    open(async () => {
      await core.sql("UPDATE svc.deliveries SET status = 'cancelled', last_error = 'gone'");
      return failure();
    });

    await startAll();
    await attempts.drain();

    expect(await current()).to.include({ status: "cancelled", lastError: "gone", attempt: 1 });
    expect(await work.attemptsOf(delivery.id)).to.have.length(1);
    expect(await work.queued(delivery.id)).to.equal(null);
  });

  describe("puts a delivery back into the queue, with no attempt counted, and frees its slot", () => {
    const wrong = createSecretBox(Buffer.alloc(32, 8));
    const inTwoSeconds: Readonly<Record<string, Partial<AttemptsOptions>>> = {
      "when its secret cannot be opened": { decryptSecret: (sealed) => wrong.decrypt(sealed) },
      "when the attempt could not be made": { send: async () => ({ kind: "unmade", reason: "no socket" }) },
      "when the POST fails for a fault of this process": { send: () => Promise.reject(new Error("a bug")) },
    };
    for (const [what, overrides] of Object.entries(inTwoSeconds)) {
      it(what, async () => {
        open(success, overrides);

        await startAll();
        await attempts.drain();

        expect(await current()).to.include({ status: "pending", attempt: 0 });
        const dueInMs = ((await work.queued(delivery.id))?.dueAt?.getTime() ?? 0) - Date.now();
        expect(dueInMs).to.be.within(0, 2_001);
        expect([done, freed, queued]).to.deep.equal([[[undefined]], 1, [2_000]]);
        expect(await work.flights()).to.deep.equal([]);
      });
    }

    it("when the record of its event is gone", async () => {
      await core.sql("DELETE FROM svc.event_data");
      open(success);

      await startAll();
      await attempts.drain();

      expect([posts, done]).to.deep.equal([[], [[undefined]]]);
      expect(await work.queued(delivery.id)).to.not.equal(null);
    });

    it("to wait for a slot, when none falls free", async () => {
      open(success);

      await startAll(place(({ giveUp }) => giveUp("busy")));
      await attempts.drain();

      expect(await work.queued(delivery.id)).to.include({ dueAt: null });
      expect([posts, queued]).to.deep.equal([[], [undefined]]);
      expect(await work.flights()).to.deep.equal([]);
    });
  });

  it("writes what is decided without an attempt", async () => {
    open(success);
    const [one] = (await take()) as [DeliveryInFlight];
    const { id, uuid } = one;

    attempts.settle(one, { id, uuid, attemptsBefore: 0, status: "cancelled", lastError: "no right" });
    await attempts.drain();

    expect(await current()).to.include({ status: "cancelled", attempt: 0, lastError: "no right" });
    expect(await work.flights()).to.deep.equal([]);
  });

  describe("after the last attempt", () => {
    beforeEach(() => core.sql("UPDATE svc.deliveries SET attempt = 2"));

    it("publishes the payload on svc.dead, and notes that it did", async () => {
      open(failure);

      await startAll();
      await attempts.drain();

      const row = await current();
      expect(row).to.include({ status: "failed", attempt: 3 });
      expect(row.deadLetteredAt).to.be.instanceOf(Date);
      const dead = broker.published.at(-1);
      expect(dead).to.deep.include({ exchange: exchanges.dead, messageId: delivery.uuid });
      expect(dead?.body).to.deep.equal(Buffer.concat(posts[0]?.body ?? []));
      expect(dead?.headers).to.include({ "x-svc-reason": "127.0.0.1:9 answered 500." });
    });

    it("leaves an unconfirmed dead letter to the sweep", async () => {
      broker.refuses = ({ exchange }) => exchange === exchanges.dead;
      open(failure);

      await startAll();
      await attempts.drain();

      expect(await current()).to.include({ status: "failed", deadLetteredAt: null });
    });
  });

  it("has a flight last for the POST and fifteen seconds", () => {
    expect(flightMsOf(10_000)).to.equal(25_000);
  });
});
