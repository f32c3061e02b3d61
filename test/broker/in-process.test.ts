import { expect } from "chai";
import type { Broker, OutgoingMessage } from "../../src/broker/broker.ts";
import { createInProcessBroker } from "../../src/broker/in-process.ts";
import { exchanges, lanes, queues } from "../../src/broker/topology.ts";
import { createLog } from "../../src/telemetry/log.ts";
import { until } from "../support/wait.ts";

const log = createLog({ level: "silent" });

function work(messageId: string, exchange: string = exchanges.deliveries): OutgoingMessage {
  return { exchange, routingKey: lanes.first, messageId, body: Buffer.from(messageId) };
}

describe("createInProcessBroker", () => {
  let broker: Broker;

  beforeEach(() => {
    broker = createInProcessBroker({ log, maxReady: 3 });
  });

  afterEach(() => broker.close());

  it("answers unconfirmed when a queue is full, and takes messages again when there is room", async () => {
    const outcomes = await broker.publish(["a", "b", "c", "d"].map((id) => work(id)));

    expect(
      outcomes.map((outcome) => (outcome.kind === "confirmed" ? "confirmed" : outcome.reason)),
    ).to.deep.equal(["confirmed", "confirmed", "confirmed", "queue full"]);
    await broker.consume({ queue: queues.first, prefetch: 1, onMessage: () => undefined });
    await until(async () => (await broker.depth(queues.first)) === 2, { what: "a message handed out" });
    expect(await broker.publish([work("e")])).to.deep.equal([{ kind: "confirmed" }]);
  });

  it("drops the oldest of svc.dead when it is full", async () => {
    const outcomes = await broker.publish(["a", "b", "c", "d"].map((id) => work(id, exchanges.dead)));

    expect(outcomes.every(({ kind }) => kind === "confirmed")).to.equal(true);
    const received: string[] = [];
    await broker.consume({
      queue: queues.dead,
      prefetch: 10,
      onMessage: (message) => received.push(message.messageId),
    });
    await until(() => received.length === 3, { what: "three messages" });
    expect(received).to.deep.equal(["b", "c", "d"]);
  });

  it("lets the rest of the process work while a handler requeues every message", async () => {
    let returns = 0;
    await broker.consume({
      queue: queues.first,
      prefetch: 1,
      onMessage(message) {
        returns += 1;
        message.requeue();
      },
    });

    await broker.publish([work("a")]);

    await until(() => returns > 3, { what: "the message again and again" });
  });

  it("hands messages out to the consumers of a queue in turn", async () => {
    const received: string[] = [];
    for (const name of ["one", "two"]) {
      const onMessage = (): unknown => received.push(name);
      await broker.consume({ queue: queues.first, prefetch: 10, onMessage });
    }

    await broker.publish(["a", "b", "c"].map((id) => work(id)));

    await until(() => received.length === 3, { what: "three messages" });
    expect(received).to.deep.equal(["one", "two", "one"]);
  });

  it("rejects to consume a missing queue", async () => {
    const failure = await broker
      .consume({ queue: "svc.nowhere", prefetch: 1, onMessage: () => undefined })
      .catch((error: unknown) => error);

    expect(failure).to.be.instanceOf(Error).with.property("message", "There is no queue svc.nowhere");
  });
});
