import { setImmediate as nextTurn } from "node:timers/promises";
import { expect } from "chai";
import type { IncomingMessage } from "../../src/broker/broker.ts";
import { createCostlyQueue } from "../../src/deliveries/costly-queue.ts";
import { until } from "../support/wait.ts";

interface Scene {
  readonly queue: ReturnType<typeof createCostlyQueue>;
  /** Ids of the messages of each batch. */
  readonly handled: string[][];
  readonly acked: string[];
  readonly requeued: string[];
  /** Adds a message, and returns whether it was accepted. */
  readonly add: (resource: string, id: string, bytes?: number, owner?: string) => boolean;
  /** Cost of a batch of one event. */
  costMs: number;
  /** Additional cost of each event of an owner. */
  readonly costOf: Map<unknown, number>;
  /** Blocks batches while it is set. */
  gate: Promise<void> | undefined;
}

function makeScene({ mostWaiting = 1_000 } = {}): Scene {
  let nowMs = 0;
  const scene: Scene = {
    handled: [],
    acked: [],
    requeued: [],
    costMs: 0,
    costOf: new Map(),
    gate: undefined,
    queue: createCostlyQueue({
      async handle(messages) {
        scene.handled.push(messages.map(({ messageId }) => messageId));
        await scene.gate;
        for (const { headers } of messages)
          nowMs += scene.costMs + (scene.costOf.get(headers["x-svc-owner"]) ?? 0);
      },
      maxItems: 200,
      maxBytes: 1_000,
      mostWaiting,
      now: () => nowMs,
    }),
    add: (resource, messageId, bytes = 1, owner) =>
      scene.queue.add(resource, {
        messageId,
        routingKey: `${resource}.on_create`,
        body: Buffer.alloc(bytes),
        headers: owner === undefined ? {} : { "x-svc-owner": owner },
        ack: () => void scene.acked.push(messageId),
        requeue: () => void scene.requeued.push(messageId),
      } satisfies IncomingMessage),
  };
  return scene;
}

const count = ({ handled }: Scene): number => handled.flat().length;

describe("createCostlyQueue", () => {
  it("takes fewer events at a time when they are slow, and more when they are not", async () => {
    const scene = makeScene();
    for (let one = 0; one < 100; one++) scene.add("slow", `${one}`);
    await until(() => count(scene) === 100, { what: "all events" });
    scene.costMs = 60;
    for (let one = 0; one < 30; one++) scene.add("heavy", `h${one}`);
    await until(() => count(scene) === 130, { what: "the events that take long" });

    const sizes = scene.handled.map((ids) => ids.length);
    expect(sizes.slice(0, 5)).to.deep.equal([1, 10, 20, 40, 29]);
    expect(sizes.slice(5)).to.deep.equal([1, 10, 5, 5, 5, 4]);
  });

  for (const [costMs, sizes] of [
    [24, [1, 10, 20]],
    [26, [1, 10, 10, 10]],
  ] as const)
    it(`takes ${sizes.join(", ")} events of ${costMs} ms: more after less than a quarter of a second`, async () => {
      const scene = makeScene();
      scene.costMs = costMs;
      for (let one = 0; one < 31; one++) scene.add("a", `${one}`);
      await until(() => count(scene) === 31, { what: "all events" });

      expect(scene.handled.map((ids) => ids.length)).to.deep.equal(sizes);
    });

  it("takes no more at a time after a quick batch that was not full", async () => {
    const scene = makeScene();
    for (let one = 0; one < 31; one++) scene.add("a", `${one}`, one < 2 ? 600 : 1);
    await until(() => count(scene) === 31, { what: "all events" });

    expect(scene.handled.map((ids) => ids.length)).to.deep.equal([1, 10, 20]);
  });

  it("takes events up to the limit of bytes, and a larger one alone", async () => {
    const scene = makeScene();
    for (const [index, bytes] of [1, 400, 600, 400, 2_000, 1].entries()) scene.add("a", `${index}`, bytes);
    await until(() => count(scene) === 6, { what: "all events" });

    expect(scene.handled).to.deep.equal([["0"], ["1", "2"], ["3"], ["4"], ["5"]]);
  });

  it("takes all events of one turn of the event loop together", async () => {
    const scene = makeScene();
    scene.add("a", "0", 1, "ada");
    for (let step = 0; step < 20; step += 1) await Promise.resolve();
    scene.add("a", "1", 1, "bob");
    await until(() => count(scene) === 2, { what: "both events" });

    expect(scene.handled).to.deep.equal([["0", "1"]]);
  });

  it("takes later events of a resource of which none was left", async () => {
    const scene = makeScene();
    scene.add("a", "early");
    await until(() => count(scene) === 1, { what: "the first event" });
    for (let turn = 0; turn < 5; turn += 1) await nextTurn();
    scene.add("a", "late");

    await until(() => count(scene) === 2, { what: "the second event" });
  });

  it("lets the event of one resource pass the backlogs of two others", async () => {
    const scene = makeScene();
    scene.costMs = 1_000;
    for (let one = 0; one < 50; one++) for (const other of ["a", "b"]) scene.add(other, `${other}${one}`);
    scene.add("c", "late");
    await until(() => count(scene) === 101, { what: "all events" });

    // The first batches of both, and no second one.
    expect(scene.handled.flat().indexOf("late")).to.equal(2);
  });

  it("lets the events of other owners pass the slow ones of one, and keeps the order of each", async () => {
    const scene = makeScene();
    scene.costOf.set("eve", 2_000);
    for (let one = 0; one < 30; one++) scene.add("a", `e${one}`, 1, "eve");
    await until(() => count(scene) >= 11, { what: "the first batch and another event" });
    for (let one = 0; one < 20; one++) scene.add("a", `b${one}`, 1, "bob");
    scene.add("a", "cleo", 1, "cleo");
    await until(() => count(scene) === 51, { what: "all events" });

    expect(
      scene.handled
        .filter((ids) => ids.length > 1)
        .flat()
        .some((id) => id.startsWith("e")),
    ).to.equal(false);
    const order = scene.handled.flat();
    const later = order.slice(order.indexOf("b0"));
    expect(later.slice(0, 22).filter((id) => id.startsWith("e"))).to.have.lengthOf.at.most(2);
    for (const owner of ["e", "b"]) {
      const own = order.filter((id) => id.startsWith(owner)).map((id) => Number(id.slice(1)));
      expect(own).to.deep.equal(own.toSorted((one, other) => one - other));
    }
  });

  it("accepts an event of an owner who has none, when another has filled the part of the resource", async () => {
    const scene = makeScene({ mostWaiting: 60 });
    scene.gate = new Promise(() => undefined);
    scene.add("a", "a turn", 1, "eve");
    await until(() => scene.handled.length === 1, { what: "a batch without an end" });
    const added = (owner: string, most: number): number =>
      Array.from({ length: most }, (_, one) => scene.add("a", `${owner}${one}`, 1, owner)).filter(Boolean)
        .length;

    expect([added("eve", 60), added("bob", 2), added("eve", 1)]).to.deep.equal([40, 1, 0]);
    const others = Array.from({ length: 10 }, (_, one) => added(`other ${one}`, 1));
    expect(others.filter((accepted) => accepted === 1)).to.have.length(4);
    expect(scene.add("b", "of another resource")).to.equal(true);
  });

  it("leaves room for other resources, however many messages of one wait", async () => {
    const scene = makeScene({ mostWaiting: 600 });
    scene.gate = new Promise(() => undefined);
    const added = (resource: string): number =>
      Array.from({ length: 700 }, (_, one) => scene.add(resource, `${resource}${one}`)).filter(Boolean)
        .length;
    scene.add("a", "a turn");
    scene.add("b", "another turn");
    await until(() => scene.handled.length === 2, { what: "two batches without an end" });

    expect(["a", "b", "c"].map(added)).to.deep.equal([400, 134, 44]);
  });

  it("limits the waiting messages, and requeues them when it stops", async () => {
    const scene = makeScene({ mostWaiting: 30 });
    let open: (() => void) | undefined;
    scene.gate = new Promise((resolve) => (open = resolve));
    for (let one = 0; one < 10; one++) scene.add("a", `${one}`);
    await until(() => scene.handled.length === 1, { what: "the first batch" });
    const taken = Array.from({ length: 40 }, (_, one) => scene.add("a", `more${one}`));

    let isStopped = false;
    const stopped = scene.queue.stop().then(() => (isStopped = true));
    for (let turn = 0; turn < 5; turn += 1) await nextTurn();
    expect(isStopped).to.equal(false);
    open?.();
    await stopped;

    // The batch has one of the first ten.
    expect(taken.filter(Boolean)).to.have.length(11);
    expect(scene.requeued).to.have.length(20);
    expect(scene.handled).to.have.length(1);
  });
});
