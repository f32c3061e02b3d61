import { expect } from "chai";
import type { PoolClient } from "pg";
import { exchanges, queues } from "../../src/broker/topology.ts";
import type { DeliveryModel, SubscriptionModel } from "../../src/db/generated/models.ts";
import { createDeliver, type DeliverOptions } from "../../src/deliveries/deliver.ts";
import type { AttemptResult } from "../../src/deliveries/delivery.ts";
import { deliveryMessage } from "../../src/deliveries/messages.ts";
import { signedHeaders } from "../../src/deliveries/sign.ts";
import { createDeliveryStore } from "../../src/deliveries/store.ts";
import { createMetrics } from "../../src/metrics.ts";
import { runWorkers, type Running } from "../../src/running.ts";
import { createSecretBox } from "../../src/subscriptions/secret.ts";
import { openCoreDatabase, type CoreDatabase } from "../support/core-database.ts";
import { createMemoryLog } from "../support/http.ts";
import { until } from "../support/wait.ts";
import { createWatchedBroker, type WatchedBroker } from "../support/watched-broker.ts";
import { admitAll, createWork, failure, inSeconds, secretBox, success, type Work } from "../support/work.ts";

type Post = Parameters<DeliverOptions["send"]>[0];

describe("createDeliver", () => {
  let core: CoreDatabase;
  let work: Work;
  let broker: WatchedBroker;
  let running: Running | undefined;
  let lines: Record<string, unknown>[];
  let subscription: SubscriptionModel;
  let delivery: DeliveryModel;
  let posts: Post[];
  let retries: number[];

  before(async () => {
    core = await openCoreDatabase();
    work = createWork(core.database.prisma);
  });

  beforeEach(async () => {
    await work.clear();
    subscription = await work.addSubscription();
    delivery = await work.addDelivery(subscription);
    broker = createWatchedBroker();
    running = undefined;
    posts = [];
    retries = [];
  });

  afterEach(async () => {
    await running?.stop();
    await broker.close();
  });

  after(() => core.close());

  function start(
    answer: (post: Post) => AttemptResult | Promise<AttemptResult>,
    overrides: Partial<DeliverOptions> = {},
  ): void {
    const memory = createMemoryLog();
    lines = memory.lines;
    const deliver = createDeliver({
      broker,
      store: createDeliveryStore({ sql: core.sql }),
      async send(post) {
        posts.push(post);
        return answer(post);
      },
      decryptSecret: (sealed) => secretBox.decrypt(sealed),
      isAdminFor: () => false,
      scheduleOf: () => ({ maxAttempts: 3, backoffMs: [60_000] }),
      jitter: 0,
      timeoutMs: 5_000,
      concurrency: 8,
      admission: admitAll,
      metrics: createMetrics().deliveries,
      log: memory.log,
      onRetry: (delayMs) => retries.push(delayMs),
      random: () => 0.5,
      ...overrides,
    });
    running = runWorkers({ workers: [deliver], log: memory.log });
  }

  const queue = (...deliveries: readonly DeliveryModel[]): Promise<unknown> =>
    broker.publish(deliveries.map(({ id, uuid }) => deliveryMessage({ id: String(id), uuid }, "first")));
  const current = (): Promise<DeliveryModel> => work.deliveryOf(delivery.id);
  const untilStatus = (status: string, { id } = delivery): Promise<unknown> =>
    until(async () => (await work.deliveryOf(id)).status === status, {
      what: `a delivery that is ${status}`,
    });
  const untilGivenBack = (): Promise<Record<string, unknown>> =>
    until(() => lines.find(({ msg }) => msg === "delivery not handled; giving the message back"), {
      what: "a message given back",
    });
  const attemptLines = (): readonly Record<string, unknown>[] =>
    lines.filter(({ event }) => event === "delivery.attempt");
  const untilAttempt = (): Promise<unknown> => until(() => attemptLines().length > 0, { what: "an attempt" });
  /** Queues the delivery and another that is delivered in the same turn; resolves when both are settled. */
  const handleBesides = async (): Promise<void> => {
    const other = await work.addDelivery(await work.addSubscription());
    await queue(delivery, other);
    await untilStatus("delivered", other);
    await running?.stop();
    expect(await broker.depth(queues.first)).to.equal(0);
  };

  it("posts the stored bytes, signed, and records the success", async () => {
    start(success);

    await queue(delivery);
    await untilStatus("delivered");

    const body = Buffer.from(delivery.body);
    const headers = signedHeaders({
      secret: "sec_test",
      body,
      eventUuid: delivery.eventUuid,
      deliveryUuid: delivery.uuid,
    });
    expect(posts).to.deep.equal([{ url: subscription.url, headers, body }]);
    expect(await current()).to.include({
      attempt: 1,
      lastError: null,
      nextAttemptAt: null,
      leasedUntil: null,
    });
    expect(await work.attemptsOf(delivery.id)).to.have.length(1);
  });

  it("plans the retry of a failure, and tells when it is due", async () => {
    start(failure);

    await queue(delivery);
    await untilStatus("retrying");

    const { attempt, lastError, nextAttemptAt } = await current();
    expect([attempt, lastError]).to.deep.equal([1, "127.0.0.1:9 answered 500."]);
    expect(nextAttemptAt?.getTime()).to.be.within(Date.now() + 50_000, Date.now() + 60_000);
    await untilAttempt();
    expect(retries).to.deep.equal([60_000]);
  });

  it("makes one POST when two messages stand for one delivery", async () => {
    start(success);

    await queue(delivery, delivery);
    await untilStatus("delivered");
    await running?.stop();

    expect(posts).to.have.length(1);
    expect(await broker.depth(queues.first)).to.equal(0);
  });

  it("leaves a delivery to the dispatcher that has leased it", async () => {
    await core.sql("UPDATE svc.deliveries SET leased_until = now() + interval '1 minute'");
    const before = await current();
    start(success);

    await handleBesides();

    expect(posts).to.have.length(1);
    expect(await current()).to.deep.equal(before);
  });

  it("overwrites and buries nothing when its lease was lost before the outcome was written", async () => {
    const held = inSeconds(60);
    await core.sql("UPDATE svc.deliveries SET attempt = 2");
    start(async () => {
      await core.sql("UPDATE svc.deliveries SET leased_until = $1", [held]);
      return failure();
    });

    await queue(delivery);
    await untilAttempt();
    await running?.stop();

    expect(attemptLines()[0]).to.include({ isWritten: false, status: "failed" });
    expect(await current()).to.deep.include({ status: "pending", attempt: 2, leasedUntil: held });
    expect(await work.attemptsOf(delivery.id)).to.deep.equal([]);
    expect(await broker.depth(queues.dead)).to.equal(0);
  });

  it("keeps `cancelled`, and the attempt, of a delivery that was cancelled during its POST", async () => {
    start(async () => {
      await core.sql(
        "UPDATE svc.deliveries SET status = 'cancelled', last_error = 'gone', next_attempt_at = NULL",
      );
      return failure();
    });

    await queue(delivery);
    await untilAttempt();

    expect(await current()).to.include({
      status: "cancelled",
      lastError: "gone",
      attempt: 1,
      nextAttemptAt: null,
    });
    expect(await work.attemptsOf(delivery.id)).to.have.length(1);
  });

  it("holds a delivery whose subscription is paused, and cancels one whose subscription is gone", async () => {
    const orphan = await work.addDelivery(await work.addSubscription({ url: "http://127.0.0.1:9/gone" }));
    await core.sql("UPDATE svc.subscriptions SET is_active = false WHERE id = $1", [subscription.id]);
    await core.sql("DELETE FROM svc.subscriptions WHERE id = $1", [orphan.subscriptionId]);
    start(success);

    await queue(orphan);
    await handleBesides();

    expect(posts).to.have.length(1);
    expect(await current()).to.include({ status: "pending", nextAttemptAt: null, queuedUntil: null });
    expect(await work.deliveryOf(orphan.id)).to.include({
      status: "cancelled",
      lastError: "The subscription was deleted.",
    });
  });

  describe("of a record that the subscriber does not own", () => {
    beforeEach(() => core.sql("UPDATE svc.events SET owner_id = '0'"));

    it("is cancelled without a POST once the subscriber is no admin any more", async () => {
      start(success);

      await queue(delivery);
      await untilStatus("cancelled");

      expect(posts).to.deep.equal([]);
      expect(await current()).to.include({
        lastError: "The subscriber may no longer see this record.",
        attempt: 0,
        nextAttemptAt: null,
        leasedUntil: null,
      });
      expect(await work.attemptsOf(delivery.id)).to.deep.equal([]);
    });

    it("is delivered to an admin, as the user is now", async () => {
      await core.sql("UPDATE svc.users SET is_admin = true");
      start(success, { isAdminFor: (resource, { isAdmin }) => resource === "notes" && isAdmin });

      await queue(delivery);

      await untilStatus("delivered");
    });
  });

  it("loses nothing when the secret cannot be opened, says why, and delivers with the right key", async () => {
    const wrong = createSecretBox(Buffer.alloc(32, 8));
    let box = wrong;
    start(success, { decryptSecret: (sealed) => box.decrypt(sealed) });
    await queue(delivery);
    const line = await untilGivenBack();
    expect(line).to.have.nested.property("err.message").that.contains("encrypted with another key");
    expect(await current()).to.include({ status: "pending", attempt: 0 });

    box = secretBox;
    // As when the lease has ended.
    await core.sql("UPDATE svc.deliveries SET leased_until = NULL");

    await untilStatus("delivered");
    expect(posts).to.have.length(1);
  });

  describe("when the database is away", () => {
    let other: PoolClient;

    beforeEach(async () => {
      other = await core.database.pool.connect();
    });

    afterEach(() => other.release());

    it("writes the outcome of a POST later, and does not make the POST again", async () => {
      await other.query("BEGIN; LOCK TABLE svc.attempts IN ACCESS EXCLUSIVE MODE");
      start(success);
      await queue(delivery);

      // Cuts the connection that waits with the outcome.
      await until(
        async () => {
          const { rows } = await other.query<{ cut: boolean }>(
            "SELECT pg_terminate_backend(pid) AS cut FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
          );
          return rows.some(({ cut }) => cut);
        },
        { what: "the write of the outcome" },
      );
      await until(() => lines.some(({ msg }) => msg === "outcome not written; trying again"), {
        what: "a retry",
      });
      await other.query("COMMIT");

      await untilStatus("delivered");
      expect(posts).to.have.length(1);
      expect(await work.attemptsOf(delivery.id)).to.have.length(1);
    });

    it("gives the message back when there is no lease to be had, and delivers it after", async () => {
      await other.query("ALTER TABLE svc.deliveries RENAME TO deliveries_away");
      try {
        start(success);
        await queue(delivery);
        await untilGivenBack();
      } finally {
        await other.query("ALTER TABLE svc.deliveries_away RENAME TO deliveries");
      }

      await untilStatus("delivered");
      expect(posts).to.have.length(1);
    });
  });

  describe("after the last attempt", () => {
    beforeEach(() => core.sql("UPDATE svc.deliveries SET attempt = 2"));

    it("publishes the payload on svc.dead, and notes that it did", async () => {
      start(failure);

      await queue(delivery);
      await until(async () => (await current()).deadLetteredAt, { what: "the mark" });

      expect(await current()).to.include({ status: "failed", attempt: 3, nextAttemptAt: null });
      const dead = broker.published.at(-1);
      expect(dead).to.deep.include({ exchange: exchanges.dead, messageId: delivery.uuid });
      expect(dead?.body).to.deep.equal(Buffer.from(delivery.body));
      expect(dead?.headers).to.include({ "x-svc-reason": "127.0.0.1:9 answered 500." });
    });

    it("leaves an unconfirmed dead letter to the sweep", async () => {
      broker.refuses = ({ exchange }) => exchange === exchanges.dead;
      start(failure);

      await queue(delivery);
      await untilStatus("failed");
      await running?.stop();

      expect((await current()).deadLetteredAt).to.equal(null);
      expect(await broker.depth(queues.first)).to.equal(0);
    });
  });

  it("puts a message that stands for no delivery on svc.dead, and gives it back while that is not confirmed", async () => {
    broker.refuses = ({ exchange }) => exchange === exchanges.dead;
    const body = Buffer.from("what is this?");
    start(success);
    await broker.publish([
      { exchange: exchanges.deliveries, routingKey: "first", messageId: "theirs", body },
    ]);
    await untilGivenBack();

    broker.refuses = () => false;

    await until(async () => (await broker.depth(queues.dead)) === 1, { what: "the dead letter" });
    expect(broker.published.at(-1)).to.deep.include({
      messageId: "theirs",
      body,
      headers: { "x-svc-reason": "not a delivery" },
    });
  });

  describe("with attempts in flight", () => {
    let answerAll: () => void;
    let answered: Promise<void>;

    beforeEach(() => {
      answered = new Promise((resolve) => (answerAll = resolve));
    });

    const slow = async (): Promise<AttemptResult> => {
      await answered;
      return success();
    };

    it("waits for them on stop, and records them", async () => {
      start(slow);
      await queue(delivery);
      await until(() => posts.length === 1, { what: "the POST" });

      const stopped = running?.stop();
      answerAll();
      await stopped;

      expect(await current()).to.include({ status: "delivered", attempt: 1 });
    });
  });
});
