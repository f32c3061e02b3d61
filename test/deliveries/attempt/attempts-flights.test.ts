import { expect } from "chai";
import type { PoolClient } from "pg";
import type { DeliveryModel, SubscriptionModel } from "../../../src/db/generated/models.ts";
import type { Done, Place } from "../../../src/deliveries/admission/admission.ts";
import {
  createAttempts,
  type Attempts,
  type AttemptsOptions,
  type DeliveryInFlight,
} from "../../../src/deliveries/attempt/attempts.ts";
import type { AttemptResult } from "../../../src/deliveries/delivery.ts";
import type { Flight } from "../../../src/deliveries/flights.ts";
import { createDeliveryStore, type DeliveryStore } from "../../../src/deliveries/store.ts";
import { createMetrics } from "../../../src/telemetry/metrics.ts";
import { runWorkers, type Running } from "../../../src/app/workers.ts";
import { openCoreDatabase, type CoreDatabase } from "../../support/core-database.ts";
import { createMemoryLog } from "../../support/http.ts";
import { until } from "../../support/wait.ts";
import { createWatchedBroker, type WatchedBroker } from "../../support/watched-broker.ts";
import { createWork, failure, secretBox, success, type Work } from "../../support/work.ts";

type Post = Parameters<AttemptsOptions["send"]>[0];
type Visit = Parameters<Place["enter"]>[0];

// Flights, faults and the stop; attempts.test.ts has the rest.
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

  describe("of several in one flight", () => {
    beforeEach(async () => {
      for (let count = 0; count < 2; count++) await work.addDelivery(subscription);
    });

    it("keeps the flight until the last is written", async () => {
      const answers: (() => void)[] = [];
      open(() => new Promise((resolve) => answers.push(() => resolve(success()))));
      await startAll();
      await until(() => answers.length === 3, { what: "the POSTs" });

      for (const stillOpen of [2, 1]) {
        answers.shift()?.();
        await until(
          async () =>
            (await work.deliveries()).filter(({ status }) => status === "pending").length === stillOpen,
          {
            what: `${stillOpen} left`,
          },
        );
        expect(await work.flights()).to.have.length(1);
      }
      answers.shift()?.();
      await attempts.drain();

      expect(await work.flights()).to.deep.equal([]);
    });

    it("ends the flight when outcomes and returns are written at once", async () => {
      let together: (() => void) | undefined;
      const both = new Promise<void>((resolve) => (together = resolve));
      let writes = 0;
      const meet = async <T>(write: Promise<T>): Promise<T> => {
        const written = await write;
        writes += 1;
        if (writes === 2) together?.();
        await both;
        return written;
      };
      open(success, {
        store: {
          ...store,
          record: (options) => meet(store.record(options)),
          putBack: (options) => meet(store.putBack(options)),
        },
      });
      const [one, other, third] = (await take()) as [DeliveryInFlight, DeliveryInFlight, DeliveryInFlight];

      attempts.start(one, free);
      attempts.start(other, free);
      attempts.putBack(third, { id: third.id, delayMs: undefined });
      await attempts.drain();

      expect(await work.flights()).to.deep.equal([]);
    });

    it("keeps the flight of the others when a dead letter cannot be noted down", async () => {
      await core.sql("UPDATE svc.deliveries SET attempt = 2 WHERE id = $1", [String(delivery.id)]);
      open(failure, { store: { ...store, markDeadLettered: () => Promise.reject(new Error("no")) } });
      const [one] = (await take()) as [DeliveryInFlight];

      attempts.start(one, free);
      await attempts.drain();

      expect(await current()).to.include({ status: "failed", deadLetteredAt: null });
      expect(one.flight.unwritten).to.equal(2);
      expect(await work.flights()).to.have.length(1);
    });
  });

  describe("when the database is away", () => {
    let other: PoolClient;

    beforeEach(async () => {
      other = await core.database.pool.connect();
    });

    afterEach(async () => {
      await other.query("ROLLBACK");
      other.release();
    });

    it("writes the outcome of a POST later, and does not make the POST again", async () => {
      await other.query("BEGIN; LOCK TABLE svc.attempts IN ACCESS EXCLUSIVE MODE");
      open(success);
      await startAll();

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
      await attempts.drain();

      expect(await current()).to.include({ status: "delivered", attempt: 1 });
      expect(posts).to.have.length(1);
      expect(await work.attemptsOf(delivery.id)).to.have.length(1);
      expect(await work.flights()).to.deep.equal([]);
    });
  });

  it("puts back, with its flight ended, what the database does not take for a fault of its own", async () => {
    open(success, { store: { ...store, record: () => Promise.reject(new Error("a bug")) } });

    await startAll();
    await attempts.drain();

    expect(await work.queued(delivery.id)).to.not.equal(null);
    expect(await work.flights()).to.deep.equal([]);
    expect(lines.some(({ err }) => (err as Error | undefined)?.message === "a bug")).to.equal(true);
  });

  describe("on stop", () => {
    it("waits for the attempts in flight, and records them", async () => {
      let answer: (() => void) | undefined;
      open(() => new Promise((resolve) => (answer = () => resolve(success()))));
      await startAll();
      await until(() => answer, { what: "the POST" });

      const stopped = running?.stop();
      answer?.();
      await stopped;

      expect(await current()).to.include({ status: "delivered", attempt: 1 });
      expect(await work.flights()).to.deep.equal([]);
    });

    it("begins none any more, and leaves what waited for a slot due at once", async () => {
      await work.addDelivery(subscription);
      const visits: Visit[] = [];
      let answer: (() => void) | undefined;
      open(() => new Promise((resolve) => (answer = () => resolve(success()))));
      const [first, second] = (await take()) as [DeliveryInFlight, DeliveryInFlight];
      // The second waits for the slot of the first.
      const slot: Done = () => visits[1]?.begin((...result) => done.push(result));
      attempts.start(
        first,
        place((visit) => (visits.push(visit), visit.begin(slot))),
      );
      attempts.start(
        second,
        place((visit) => visits.push(visit)),
      );
      await until(() => answer, { what: "the POST" });

      const stopped = running?.stop();
      answer?.();
      await stopped;

      expect([posts.length, done]).to.deep.equal([1, [[]]]);
      expect((await work.queued(BigInt(second.id)))?.dueAt?.getTime()).to.be.at.most(Date.now() + 1);
      expect(await work.flights()).to.deep.equal([]);
    });

    it("leaves the place of one that comes after it", async () => {
      open(success);
      const [one] = (await take()) as [DeliveryInFlight];
      await running?.stop();

      attempts.start(one, free);
      await attempts.drain();

      expect([left, posts.length]).to.deep.equal([1, 0]);
      expect(await work.queued(delivery.id)).to.not.equal(null);
      expect(await work.flights()).to.deep.equal([]);
    });
  });
});
