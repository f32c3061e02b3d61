import { setImmediate as nextTurn } from "node:timers/promises";
import { expect } from "chai";
import { queues } from "../../src/broker/topology.ts";
import { ResultTooLargeError } from "../../src/db/result-limit.ts";
import type { Scan } from "../../src/events/outbox-cursor.ts";
import type { Outbox } from "../../src/events/outbox.ts";
import { never, numbers, present, requeueAfterMs, useRelayScene } from "../support/relay-scene.ts";
import { until } from "../support/wait.ts";

type Reading = Parameters<Outbox["read"]>[0];

const isOfNew = ({ isNew, range }: Scan, below: bigint): boolean => isNew && range.from.transaction < below;
const isAlone = ({ scans }: Reading): boolean => scans.length === 1 && !scans[0]!.isNew;
const isOfAll = ({ scans }: Reading): boolean => scans.some(({ range }) => range.from.transaction <= 0n);
const tooSlow = (): Error => Object.assign(new Error("too slow"), { code: "57014" });

// Reads that take too long; relay.test.ts has the rest.
describe("createRelay", () => {
  const scene = useRelayScene();
  const { start, addEvents, published, untilPublished } = scene;

  it("continues with new events while the rest of the outbox takes longer than a statement may", async () => {
    await addEvents(1, "papers");
    let isSlow = true;
    start({
      outbox: {
        ...scene.outbox,
        read: (options) =>
          isSlow && options.scans.some(({ range }) => range.from.transaction < 0n)
            ? Promise.reject(tooSlow())
            : scene.outbox.read(options),
      },
    });
    await until(() => scene.lines.some(({ msg }) => msg === "relay turn failed; trying again"), {
      what: "a failed turn",
    });
    await scene.work.addEvent({ recordId: "new" });
    await untilPublished(1);
    expect(published()).to.deep.equal(["new"]);

    isSlow = false;
    scene.skewMs += 60_000;

    await until(() => published().includes("1"), { what: "the rest" });
  });

  it("continues with new events beside events whose read is larger than a result may be", async () => {
    await addEvents(1, "papers");
    start({
      outbox: {
        ...scene.outbox,
        read: (options) =>
          options.scans.some(({ range }) => range.from.transaction < 0n)
            ? Promise.reject(new ResultTooLargeError(1))
            : scene.outbox.read(options),
      },
    });

    await until(() => scene.lines.some(({ msg }) => msg === "relay turn failed; trying again"), {
      what: "a failed turn",
    });
    await scene.work.addEvent({ recordId: "new" });
    await untilPublished(1);
    expect(published()).to.deep.equal(["new"]);
  });

  it("publishes a lost event again once a much later one is fanned out, however full the queue is", async () => {
    await scene.broker.consume({
      queue: queues.fanout,
      prefetch: 100,
      onMessage(message) {
        if (published().length === 1) return message.ack();
        const id = message.headers["x-svc-id"];
        void scene.core.sql("DELETE FROM svc.outbox WHERE event_id = $1", [id]).then(() => message.ack());
      },
    });
    start({ broker: { ...scene.broker, depth: async () => 1_000 } });
    await scene.work.addEvent({ recordId: "lost" });
    await untilPublished(1);
    scene.skewMs += 11 * requeueAfterMs;
    await scene.untilTurns(5);
    expect(published()).to.deep.equal(["lost"]);

    await scene.work.addEvent({ recordId: "later" });
    await untilPublished(2);
    await until(() => (scene.skewMs += 100) > 0 && published().length === 3, {
      what: "the lost one",
      timeoutMs: never,
    });

    expect(published()).to.deep.equal(["lost", "later", "lost"]);
  });

  it("does not consider an event lost while it is being presented, which may take minutes", async () => {
    let [tries, end] = [0, (): void => undefined];
    const ended = new Promise<void>((resolve) => (end = resolve));
    start({
      async present(resource, events) {
        tries += 1;
        await ended;
        return present(resource, events);
      },
    });
    await addEvents(1);
    await until(() => tries === 1, { what: "the presenting" });

    for (let second = 0; second < 8; second += 1) {
      scene.skewMs += 1_000;
      await scene.untilTurns(2);
    }
    end();
    await untilPublished(1);

    expect([tries, scene.lines.filter(({ event }) => event === "relay.stranded")]).to.deep.equal([1, []]);
  });

  it("continues with events left over while a later read of the whole outbox takes too long", async () => {
    let [reads, slow] = [0, 0];
    start({
      outbox: {
        ...scene.outbox,
        read(options) {
          reads += 1;
          if (reads < 4 || !options.scans.some(({ range }) => range.from.transaction < 0n))
            return scene.outbox.read(options);
          slow += 1;
          return Promise.reject(tooSlow());
        },
      },
    });
    await until(() => reads > 3, { what: "the first reads" });
    scene.skewMs += 300_001;
    await until(() => slow > 0, { what: "a read of the whole outbox" });

    await scene.fanOut();
    for (let batch = 0; batch < 12; batch += 1) await addEvents(20);

    await untilPublished(240);
    expect(new Set(published())).to.deep.equal(new Set(numbers(20)));
    // Of both resources, and of each alone.
    await until(() => slow === 3, { what: "a read of each resource alone" });
    const before = reads;
    await until(() => reads > before + 5, { what: "some reads more" });
    expect(slow).to.equal(3);
  });

  it("continues with events from before its start when only reads that look far take too long", async () => {
    await addEvents(20);
    await scene.fanOut();
    start({
      outbox: {
        ...scene.outbox,
        read: (options) =>
          options.scans.some(({ isNew, looksFar }) => looksFar && !isNew)
            ? Promise.reject(tooSlow())
            : scene.outbox.read(options),
      },
    });

    await untilPublished(20);
  });

  it("continues with events from a time without reads, when new events take too long", async () => {
    let [reads, cutoff] = [0, 0n];
    start({
      outbox: {
        ...scene.outbox,
        read(options) {
          reads += 1;
          return options.scans.some((scan) => isOfNew(scan, cutoff))
            ? Promise.reject(tooSlow())
            : scene.outbox.read(options);
        },
      },
    });
    await until(() => reads > 3, { what: "the first reads" });
    await scene.fanOut();
    const [now] = await scene.core.sql<{ id: string }>("SELECT pg_current_xact_id()::text AS id");
    cutoff = BigInt(now?.id ?? 0);

    await addEvents(20);

    await untilPublished(20);
  });

  it("continues with waiting events of other resources while all of one take too long", async () => {
    await addEvents(20, "papers");
    await scene.fanOut();
    start({
      outbox: {
        ...scene.outbox,
        read: (options) =>
          options.scans.some(({ resource, range }) => resource === "notes" && range.from.transaction < 0n)
            ? Promise.reject(tooSlow())
            : scene.outbox.read(options),
      },
    });

    await untilPublished(20);
  });

  it("continues with waiting events at once after a time in which no read ended", async () => {
    await addEvents(20);
    await scene.fanOut();
    let reads = 0;
    start({
      outbox: {
        ...scene.outbox,
        read: (options) =>
          (reads += 1) > 1 && reads < 5 ? Promise.reject(tooSlow()) : scene.outbox.read(options),
      },
    });

    await untilPublished(20);
  });

  it("tries a resting resource beside a read of all of it that takes too long", async () => {
    let [isBroken, isSlow, slow] = [true, false, 0];
    await addEvents(3);
    await scene.fanOut();
    start({
      present: (resource, events) =>
        isBroken
          ? Promise.resolve({ kind: "none", reason: "no scope", isPassing: false })
          : present(resource, events),
      outbox: {
        ...scene.outbox,
        read(options) {
          if (!isSlow || !options.scans.some(({ range }) => range.from.transaction <= 0n))
            return scene.outbox.read(options);
          slow += 1;
          return Promise.reject(tooSlow());
        },
      },
    });
    await scene.untilLine("relay.resting");
    [isBroken, isSlow] = [false, true];
    scene.skewMs += 300_001;

    await untilPublished(3);

    expect(slow).to.be.above(1);
    expect(published().toSorted()).to.deep.equal(numbers(3));
  });

  it("continues with waiting events of a resource of which each read finds new events", async () => {
    await addEvents(20);
    await scene.fanOut();
    start({
      async present(resource, events) {
        await nextTurn();
        return present(resource, events);
      },
      outbox: {
        ...scene.outbox,
        async read(options) {
          if (!isAlone(options) && isOfAll(options)) throw tooSlow();
          if (options.scans.some(({ isNew }) => isNew)) await scene.work.addEvent({ recordId: "new" });
          return scene.outbox.read(options);
        },
      },
    });

    await until(() => numbers(20).every((one) => published().includes(one)), { what: "what waited" });
    expect(published()).to.include("new");
  });

  it("continues with waiting events of one resource beside the backlog of another", async () => {
    await addEvents(600);
    await addEvents(1, "papers");
    await scene.fanOut();
    start({
      batchSize: 70,
      outbox: {
        ...scene.outbox,
        read: (options) =>
          !isAlone(options) && isOfAll(options) ? Promise.reject(tooSlow()) : scene.outbox.read(options),
      },
    });

    await untilPublished(601);
    const keys = scene.broker.published.map(({ routingKey }) => routingKey);
    expect(keys.indexOf("papers.on_create")).to.be.within(0, 300);
  });

  it("reads ranges alone for a fifth of the time at most, and new events between them", async () => {
    const alone: number[] = [];
    start({
      outbox: {
        ...scene.outbox,
        read(options) {
          if (!isAlone(options) && isOfAll(options)) return Promise.reject(tooSlow());
          if (isAlone(options)) alone.push(performance.now());
          scene.skewMs += isAlone(options) ? 1_000 : 100;
          return scene.outbox.read(options);
        },
      },
    });

    await until(() => alone.length === 2, { what: "a read of each resource alone" });
    expect(alone[1]! - alone[0]!).to.be.at.least(5_000);
  });

  it("continues with waiting events of one resource while it can take nothing of another", async () => {
    await addEvents(1);
    await addEvents(1, "papers");
    start({
      outbox: {
        ...scene.outbox,
        async read(options) {
          if (!isAlone(options) && isOfAll(options)) throw tooSlow();
          const found = await scene.outbox.read(options);
          if (!isAlone(options) || options.scans[0]!.resource === "papers") return found;
          const scanned = options.scans.map((scan) => ({ scan, last: undefined, hasMore: true }));
          return { ...found, events: [], scanned };
        },
      },
    });

    await untilPublished(1);
    expect(scene.broker.published.map(({ routingKey }) => routingKey)).to.deep.equal(["papers.on_create"]);
  });
});
