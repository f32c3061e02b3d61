import { expect } from "chai";
import { exchanges, queues } from "../../src/broker/topology.ts";
import type { DeliveryModel } from "../../src/db/generated/models.ts";
import type { Admission, Admitted } from "../../src/deliveries/admission.ts";
import { createDeliver, type DeliverOptions } from "../../src/deliveries/deliver.ts";
import type { AttemptResult } from "../../src/deliveries/delivery.ts";
import { deliveryMessage } from "../../src/deliveries/messages.ts";
import { createDeliveryStore } from "../../src/deliveries/store.ts";
import { createMetrics } from "../../src/metrics.ts";
import { runWorkers, type Running } from "../../src/running.ts";
import { openCoreDatabase, type CoreDatabase } from "../support/core-database.ts";
import { createMemoryLog } from "../support/http.ts";
import { until } from "../support/wait.ts";
import { createWatchedBroker, type WatchedBroker } from "../support/watched-broker.ts";
import { admitAll, createWork, failure, inSeconds, secretBox, success, type Work } from "../support/work.ts";

const silent = { kind: "wait", delayMs: 30_000, reason: "silent" } as const;
const busy = { kind: "wait", delayMs: 30_000, reason: "busy" } as const;

// What deliver makes of a receiver that may have no attempt now; deliver.test.ts has the rest.
describe("createDeliver", () => {
  let core: CoreDatabase;
  let work: Work;
  let broker: WatchedBroker;
  let running: Running | undefined;
  let delivery: DeliveryModel;
  let posts: number;
  let waits: number[];

  before(async () => {
    core = await openCoreDatabase();
    work = createWork(core.database.prisma);
  });

  beforeEach(async () => {
    await work.clear();
    delivery = await work.addDelivery(await work.addSubscription(), { queuedUntil: inSeconds(60) });
    broker = createWatchedBroker();
    posts = 0;
    waits = [];
  });

  afterEach(async () => {
    await running?.stop();
    await broker.close();
  });

  after(() => core.close());

  function start(admit: Admission["admit"], overrides: Partial<DeliverOptions> = {}): void {
    const { log } = createMemoryLog();
    const deliver = createDeliver({
      broker,
      store: createDeliveryStore({ sql: core.sql }),
      async send() {
        posts += 1;
        return { kind: "made", result: failure() };
      },
      decryptSecret: (sealed) => secretBox.decrypt(sealed),
      isAdminFor: () => false,
      scheduleOf: () => ({ maxAttempts: 3, backoffMs: [3_600_000] }),
      jitter: 0,
      timeoutMs: 5_000,
      concurrency: 8,
      admission: { admit },
      metrics: createMetrics().deliveries,
      log,
      onRetry: (delayMs) => waits.push(delayMs),
      random: () => 0.5,
      ...overrides,
    });
    running = runWorkers({ workers: [deliver], log });
  }

  const queue = (): Promise<unknown> =>
    broker.publish([deliveryMessage({ id: String(delivery.id), uuid: delivery.uuid }, "first")]);
  const current = (): Promise<DeliveryModel> => work.deliveryOf(delivery.id);
  const untilPutOff = (): Promise<unknown> =>
    until(async () => (await current()).queuedUntil === null, { what: "the delivery to be put off" });
  const age = (hours: number): Promise<unknown> =>
    core.sql("UPDATE svc.deliveries SET updated_at = now() - $1 * interval '1 hour'", [hours]);

  it("has a delivery wait whose receiver may have no attempt now, and counts none", async () => {
    start(async () => silent);

    await queue();
    await untilPutOff();
    await running?.stop();

    const row = await current();
    expect(row).to.include({
      status: "pending",
      attempt: 0,
      lastError: "Waiting for 127.0.0.1:9, which does not answer.",
      leasedUntil: null,
    });
    expect(row.nextAttemptAt?.getTime()).to.be.within(Date.now() + 20_000, Date.now() + 30_250);
    expect([posts, waits]).to.deep.equal([0, [30_000]]);
    expect(await broker.depth(queues.first)).to.equal(0);
  });

  it("asks with the lane that the message came on", async () => {
    const asked: [string, string][] = [];
    start(async ({ uuid }, lane) => {
      asked.push([uuid, lane]);
      return busy;
    });

    await broker.publish([deliveryMessage({ id: String(delivery.id), uuid: delivery.uuid }, "retry")]);
    await untilPutOff();

    expect(asked).to.deep.equal([[delivery.uuid, "retry"]]);
  });

  describe("when its receiver has not answered for as long as its attempts would have taken, and two days", () => {
    it("gives the delivery up, and puts it on svc.dead with the reason", async () => {
      await core.sql("UPDATE svc.deliveries SET attempt = 1");
      await age(50.1);
      start(async () => silent);

      await queue();
      await until(async () => (await current()).deadLetteredAt, { what: "the mark" });

      const lastError = "Given up after 1 of 3 attempts: 127.0.0.1:9 has not answered anything for too long.";
      expect(await current()).to.include({ status: "failed", attempt: 1, lastError, nextAttemptAt: null });
      expect(await work.attemptsOf(delivery.id)).to.deep.equal([]);
      const dead = broker.published.at(-1);
      expect(dead).to.include({ exchange: exchanges.dead, messageId: delivery.uuid });
      expect(dead?.headers).to.include({ "x-svc-reason": lastError });
      expect(posts).to.equal(0);
    });

    for (const [what, hours, admitted] of [
      ["has it wait an hour before that", 49, silent],
      ["has it wait when the receiver is only busy", 1_000, busy],
    ] as const) {
      it(what, async () => {
        await age(hours);
        start(async () => admitted);

        await queue();
        await untilPutOff();

        expect(await current()).to.include({ status: "pending", attempt: 0 });
      });
    }

    it("counts that time anew after a pause of the subscription", async () => {
      await age(1_000);
      await core.sql("UPDATE svc.deliveries SET next_attempt_at = NULL");
      await createDeliveryStore({ sql: core.sql }).releaseHeld();
      start(async () => silent);

      await queue();
      await untilPutOff();

      expect(await current()).to.include({ status: "pending" });
    });
  });

  it("says what an attempt came to, before it is written", async () => {
    const results: (AttemptResult | undefined)[] = [];
    const done = (result?: AttemptResult): void => void results.push(result);
    start(async () => ({ kind: "go", done }));

    await queue();
    await until(() => results.length > 0, { what: "the result" });

    expect(results).to.have.length(1);
    expect(results[0]).to.include({ error: "http", statusCode: 500 });
  });

  it("says that no attempt was made when the secret cannot be opened", async () => {
    const results: unknown[] = [];
    const done = (result?: AttemptResult): void => void results.push(result);
    start(async () => ({ kind: "go", done }), {
      decryptSecret() {
        throw new Error("another key");
      },
    });

    await queue();
    await until(() => results.length > 0, { what: "the result" });

    expect(results).to.deep.equal([undefined]);
  });

  it("begins no attempt after the stop for a delivery that waited for a slot, and leaves it due", async () => {
    let admitLate: ((admitted: Admitted) => void) | undefined;
    let isDone = false;
    start(() => new Promise((resolve) => (admitLate = resolve)));
    await queue();
    await until(() => admitLate, { what: "the wait for a slot" });

    const stopped = running?.stop();
    admitLate?.({ kind: "go", done: () => (isDone = true) });
    await stopped;

    expect([posts, isDone]).to.deep.equal([0, true]);
    const row = await current();
    expect(row).to.include({ status: "pending", attempt: 0, leasedUntil: null, queuedUntil: null });
    expect(row.nextAttemptAt?.getTime()).to.be.at.most(Date.now() + 250);
  });

  it("postpones what never got its turn to be sent, and counts no attempt", async () => {
    let done: unknown[] | undefined;
    start(async () => ({ kind: "go", done: (...told) => (done = told) }), {
      send: async () => ({ kind: "unmade", reason: "Others go first." }),
    });

    await queue();
    await until(() => waits.length > 0, { what: "a postponement" });

    expect([waits, done]).to.deep.equal([[3_000], [undefined]]);
    expect(await current()).to.include({ status: "pending", attempt: 0, lastError: null, leasedUntil: null });
    expect(await work.attemptsOf(delivery.id)).to.deep.equal([]);
  });

  it("keeps most slots free for fresh work while retries hang", async () => {
    const hanging = await work.addSubscription({ url: "http://127.0.0.1:9/hangs" });
    const retries = [];
    for (let count = 0; count < 6; count++) retries.push(await work.addDelivery(hanging, { attempt: 1 }));
    const paths: string[] = [];
    let answerAll: (() => void) | undefined;
    const answered = new Promise<void>((resolve) => (answerAll = resolve));
    start(admitAll.admit, {
      concurrency: 8,
      async send({ url }) {
        paths.push(new URL(url).pathname);
        if (url === hanging.url) await answered;
        return { kind: "made", result: success() };
      },
    });
    await broker.publish(retries.map(({ id, uuid }) => deliveryMessage({ id: String(id), uuid }, "retry")));
    await until(() => paths.length === 2, { what: "the retries' share of slots" });

    await queue();
    await until(async () => (await current()).status === "delivered", { what: "the fresh delivery" });

    expect(paths).to.deep.equal(["/hangs", "/hangs", "/hook"]);
    answerAll?.();
    await until(() => paths.length === 7, { what: "the other retries" });
  });
});
