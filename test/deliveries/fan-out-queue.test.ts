import { expect } from "chai";
import type { IncomingMessage } from "../../src/broker/broker.ts";
import { createFanOutQueue, type FanOutQueue } from "../../src/deliveries/fan-out-queue.ts";
import { holderOfMessage } from "../../src/events/event-message.ts";
import { groupBy } from "../../src/kit/group-by.ts";
import { until } from "../support/wait.ts";

interface Added {
  readonly id: string;
  /** Null: the record has no owner. */
  readonly owner: string | null;
  readonly resource?: string;
  readonly bytes?: number;
}

interface Scene {
  readonly queue: FanOutQueue;
  /** Ids of the messages of each batch. */
  readonly handled: string[][];
  /** Ids of messages that the queue itself acknowledged. */
  readonly acked: string[];
  readonly requeued: string[];
  readonly add: (added: Added) => void;
  /** Adds as many events of one owner. */
  readonly addMany: (owner: string, count: number, bytes?: number) => void;
  readonly untilHandled: (count: number) => Promise<unknown>;
  /** Blocks the batches until the returned function is called. */
  readonly close: () => () => void;
  /** Number of deliveries of one event, by owner. */
  readonly deliveries: Map<string, number>;
}

/** Makes a queue whose batches have at most 200 events and 500 deliveries. */
function makeScene(): Scene {
  let gate: Promise<void> | undefined;
  const scene: Scene = {
    handled: [],
    acked: [],
    requeued: [],
    deliveries: new Map(),
    queue: createFanOutQueue({
      async handle(messages) {
        scene.handled.push(messages.map(({ messageId }) => messageId));
        await gate;
        for (const [holder, { length: events }] of groupBy(messages, holderOfMessage))
          scene.queue.note(holder, { events, deliveries: events * (scene.deliveries.get(holder) ?? 0) });
      },
      mostItems: 200,
      mostCost: 500,
    }),
    add: ({ id: messageId, owner, resource = "notes", bytes = 0 }) =>
      scene.queue.add({
        messageId,
        routingKey: `${resource}.on_create`,
        body: Buffer.alloc(bytes),
        headers: owner === null ? {} : { "x-svc-owner": owner },
        ack: () => void scene.acked.push(messageId),
        requeue: () => void scene.requeued.push(messageId),
      } satisfies IncomingMessage),
    addMany(owner, count, bytes = 0) {
      for (let one = 0; one < count; one++) scene.add({ id: `${owner}${one}`, owner, bytes });
    },
    untilHandled: (count) =>
      until(() => scene.handled.flat().length >= count, { what: `${count} handled events` }),
    close() {
      let open: (() => void) | undefined;
      gate = new Promise((resolve) => (open = resolve));
      return () => {
        gate = undefined;
        open?.();
      };
    },
  };
  return scene;
}

function message(messageId: string): IncomingMessage {
  return {
    messageId,
    routingKey: "notes.on_create",
    body: Buffer.alloc(0),
    headers: {},
    ack: () => undefined,
    requeue: () => undefined,
  };
}

const sizesOf = ({ handled }: Scene): readonly number[] => handled.map(({ length }) => length);

/** Lets a due batch begin. */
const turns = async (): Promise<void> => {
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
};

describe("createFanOutQueue", () => {
  it("puts an event into the next batch that comes during another owner's flood", async () => {
    const scene = makeScene();
    scene.deliveries.set("flood", 99);
    scene.add({ id: "first", owner: "flood" });
    await scene.untilHandled(1);
    await turns();
    const open = scene.close();
    scene.addMany("flood", 100);
    await scene.untilHandled(6);
    scene.add({ id: "late", owner: "light" });
    open();
    await scene.untilHandled(102);

    expect(scene.handled[1]).to.deep.equal(["flood0", "flood1", "flood2", "flood3", "flood4"]);
    expect(scene.handled[2]).to.have.members(["late", "flood5", "flood6", "flood7", "flood8"]);
  });

  it("handles one event of an unknown owner, then as many as its deliveries allow", async () => {
    const scene = makeScene();
    scene.deliveries.set("a", 9);
    scene.addMany("a", 121);
    await scene.untilHandled(121);

    expect(sizesOf(scene)).to.deep.equal([1, 50, 50, 20]);
    expect(scene.handled.flat()).to.deep.equal(Array.from({ length: 121 }, (_, one) => `a${one}`));
  });

  it("handles fewer when the last events made more deliveries, and 200 when they made none", async () => {
    const scene = makeScene();
    scene.addMany("a", 1);
    await scene.untilHandled(1);
    for (const [deliveries, sizes] of [
      [0, [200, 10]],
      [99, [200, 5, 5]],
      [9, [5, 50, 50]],
    ] as const) {
      scene.deliveries.set("a", deliveries);
      scene.handled.length = 0;
      const count = sizes.reduce((all: number, size) => all + size, 0);
      scene.addMany("a", count);
      await scene.untilHandled(count);
      expect(sizesOf(scene), `${deliveries} deliveries`).to.deep.equal(sizes);
      await turns();
    }
  });

  it("puts one event each of 150 unknown owners into one batch", async () => {
    const scene = makeScene();
    for (let owner = 0; owner < 150; owner++) scene.add({ id: `${owner}`, owner: `${owner}` });
    await scene.untilHandled(150);

    expect(sizesOf(scene)).to.deep.equal([150]);
  });

  it("uses the resource as the owner of events without an owner", async () => {
    const scene = makeScene();
    scene.add({ id: "1", owner: null, resource: "tasks" });
    scene.add({ id: "2", owner: null, resource: "notes" });
    scene.add({ id: "3", owner: null, resource: "notes" });
    await scene.untilHandled(3);

    expect(scene.handled).to.deep.equal([["1", "2"], ["3"]]);
  });

  it("counts 4 KiB of a message as a delivery, and handles a larger one than a batch alone", async () => {
    const scene = makeScene();
    scene.addMany("a", 1);
    await scene.untilHandled(1);
    scene.addMany("a", 12, 99 * 4096);
    await scene.untilHandled(13);
    expect(sizesOf(scene)).to.deep.equal([1, 5, 5, 2]);

    scene.handled.length = 0;
    await turns();
    scene.add({ id: "small", owner: "a" });
    scene.add({ id: "large", owner: "a", bytes: 3 * 1024 ** 2 });
    scene.add({ id: "last", owner: "a" });
    await scene.untilHandled(3);
    expect(scene.handled).to.deep.equal([["small"], ["large"], ["last"]]);
  });

  it("runs one batch at a time", async () => {
    const scene = makeScene();
    const open = scene.close();
    scene.add({ id: "1", owner: "a" });
    await scene.untilHandled(1);
    scene.add({ id: "2", owner: "b" });
    await turns();
    expect(scene.handled).to.deep.equal([["1"]]);

    open();
    await scene.untilHandled(2);
    expect(scene.handled).to.deep.equal([["1"], ["2"]]);
  });

  it("begins a batch of the messages that come while the last one ends", async () => {
    const handled: string[] = [];
    const late = message("late");
    const queue: FanOutQueue = createFanOutQueue({
      async handle(messages) {
        handled.push(...messages.map(({ messageId }) => messageId));
        if (handled.length === 1) void Promise.resolve().then(() => queue.add(late));
      },
      mostItems: 200,
      mostCost: 500,
    });
    queue.add(message("first"));

    await until(() => handled.length === 2, { what: "the late one" });
  });

  it("puts one event each of many unknown owners into a batch, whatever else these have", async () => {
    const scene = makeScene();
    for (let owner = 0; owner < 5; owner++) scene.addMany(`${owner} `, 2);
    scene.add({ id: "light", owner: "light" });
    await scene.untilHandled(11);

    expect(sizesOf(scene)).to.deep.equal([6, 5]);
  });

  it("requeues waiting messages when it stops, finishes the running batch, and begins no other", async () => {
    const scene = makeScene();
    const open = scene.close();
    scene.add({ id: "1", owner: "a" });
    await scene.untilHandled(1);
    for (const owner of ["a", "b", "c"]) scene.add({ id: `${owner} waits`, owner });

    let isStopped = false;
    const stopped = scene.queue.stop().then(() => (isStopped = true));
    await turns();
    expect(scene.requeued).to.have.members(["a waits", "b waits", "c waits"]);
    expect(isStopped).to.equal(false);
    scene.add({ id: "late", owner: "d" });
    open();
    await stopped;
    await turns();
    scene.add({ id: "later", owner: "d" });
    await turns();

    expect(scene.requeued.slice(3)).to.deep.equal(["late", "later"]);
    expect(scene.handled).to.deep.equal([["1"]]);
    expect(scene.acked).to.deep.equal([]);
  });

  it("begins no empty batch when it stops at once", async () => {
    const scene = makeScene();
    scene.add({ id: "1", owner: "a" });
    await scene.queue.stop();

    expect([scene.requeued, scene.handled]).to.deep.equal([["1"], []]);
  });
});
