import { expect } from "chai";
import type { Broker, Consumption, IncomingMessage, OutgoingMessage } from "../../src/broker/broker.ts";
import { createInProcessBroker } from "../../src/broker/in-process.ts";
import { connectRabbitMq } from "../../src/broker/rabbitmq.ts";
import { exchanges, lanes, queues } from "../../src/broker/topology.ts";
import { createLog } from "../../src/telemetry/log.ts";
import { purgeQueues } from "../support/queues.ts";
import { amqpUrl } from "../support/services.ts";
import { until } from "../support/wait.ts";

const log = createLog({ level: "silent" });

/** Every implementation of `Broker`. Each must pass the same tests. */
const implementations: readonly { readonly name: string; readonly open: () => Promise<Broker> }[] = [
  { name: "in-process", open: async () => createInProcessBroker({ log }) },
  {
    name: "RabbitMQ",
    async open() {
      const url = await amqpUrl();
      await purgeQueues(url);
      return connectRabbitMq({ url, log });
    },
  },
];

const confirmed = { kind: "confirmed" };

const ack = (message: IncomingMessage): void => message.ack();
const hold = (): void => undefined;
const ids = (messages: readonly IncomingMessage[]): readonly string[] =>
  messages.map(({ messageId }) => messageId);

function work(messageId: string, overrides: Partial<OutgoingMessage> = {}): OutgoingMessage {
  return {
    exchange: exchanges.deliveries,
    routingKey: lanes.first,
    messageId,
    body: Buffer.from(messageId),
    ...overrides,
  };
}

function numbered(count: number): readonly OutgoingMessage[] {
  return Array.from({ length: count }, (_, index) => work(`m${index}`));
}

for (const { name, open } of implementations) {
  describe(`the ${name} broker`, () => {
    let broker: Broker;
    let consumptions: Consumption[];

    beforeEach(async () => {
      broker = await open();
      consumptions = [];
    });

    afterEach(async () => {
      for (const consumption of consumptions) await consumption.stop();
      await broker.close();
    });

    /** Consumes into a list; `onMessage` settles each message. */
    async function collect(
      onMessage: (message: IncomingMessage) => void,
      { queue = queues.first, prefetch = 100 }: { queue?: string; prefetch?: number } = {},
    ): Promise<{ readonly received: IncomingMessage[]; readonly consumption: Consumption }> {
      const received: IncomingMessage[] = [];
      const consumption = await broker.consume({
        queue,
        prefetch,
        onMessage(message) {
          received.push(message);
          onMessage(message);
        },
      });
      consumptions.push(consumption);
      return { received, consumption };
    }

    const depthIs = (depth: number, queue: string = queues.first): Promise<unknown> =>
      until(async () => (await broker.depth(queue)) === depth, { what: `${depth} messages in ${queue}` });

    it("is connected, without a fault", async () => {
      expect(broker.isConnected()).to.equal(true);
      expect(await broker.fault()).to.equal(undefined);
    });

    it("has no lasting fault when the topology exists and a message reached no queue", async () => {
      await broker.publish([work("a", { routingKey: "nowhere" })]);

      await until(async () => (await broker.fault()) === undefined, { what: "a look at the topology" });
    });

    describe("publish", () => {
      const routes = [
        { exchange: exchanges.events, routingKey: "posts.on_create", queue: queues.fanout },
        { exchange: exchanges.events, routingKey: "a.b.c.d", queue: queues.fanout },
        { exchange: exchanges.deliveries, routingKey: lanes.first, queue: queues.first },
        { exchange: exchanges.deliveries, routingKey: lanes.retry, queue: queues.retry },
        { exchange: exchanges.dead, routingKey: "", queue: queues.dead },
        { exchange: exchanges.dead, routingKey: "anything", queue: queues.dead },
      ];
      for (const { exchange, routingKey, queue } of routes) {
        it(`routes ${exchange} with the key "${routingKey}" to ${queue} alone`, async () => {
          const outcomes = await broker.publish([work("m", { exchange, routingKey })]);

          expect(outcomes).to.deep.equal([confirmed]);
          await depthIs(1, queue);
          for (const other of Object.values(queues).filter((one) => one !== queue)) await depthIs(0, other);
        });
      }

      it("answers nothing for nothing", async () => {
        expect(await broker.publish([])).to.deep.equal([]);
      });

      it("reports which message of a batch reaches no queue", async () => {
        const outcomes = await broker.publish([
          work("a"),
          work("b", { routingKey: "nowhere" }),
          work("c"),
          work("c", { routingKey: "nowhere" }),
        ]);

        const unroutable = { kind: "unconfirmed", reason: "unroutable" };
        expect(outcomes).to.deep.equal([confirmed, unroutable, confirmed, unroutable]);
        await depthIs(2);
      });

      it("survives a missing exchange", async () => {
        const [outcome] = await broker.publish([work("a", { exchange: "svc.nowhere" })]);

        expect(outcome?.kind).to.equal("unconfirmed");
        await until(async () => (await broker.publish([work("b")]))[0]?.kind === "confirmed", {
          what: "a confirm afterwards",
        });
      });

      it("confirms 2,000 messages together, and hands each of them out once", async () => {
        const messages = numbered(2_000);

        const outcomes = await broker.publish(messages);

        expect(outcomes).to.have.length(2_000);
        expect(outcomes.every(({ kind }) => kind === "confirmed")).to.equal(true);
        const { received } = await collect(ack);
        await until(() => received.length >= 2_000, { what: "all messages" });
        await depthIs(0);
        expect(new Set(ids(received)).size).to.equal(2_000);
        expect(received).to.have.length(2_000);
      });

      it("waits for the confirms that are under way when it closes", async () => {
        const publishing = broker.publish(numbered(500));

        await broker.close();

        expect((await publishing).every(({ kind }) => kind === "confirmed")).to.equal(true);
      });

      it("answers unconfirmed after close", async () => {
        await broker.close();

        expect(await broker.publish([work("a")])).to.deep.equal([{ kind: "unconfirmed", reason: "closed" }]);
        expect(broker.isConnected()).to.equal(false);
        expect(await broker.fault()).to.be.a("string");
      });
    });

    describe("consume", () => {
      it("hands out the bytes, the id, the key and the headers as they were published", async () => {
        const body = Buffer.concat([
          Buffer.from("ÆØÅ 日本 \u{1f600}"),
          Buffer.from(Array.from({ length: 256 }, (_, i) => i)),
        ]);
        const { received } = await collect(ack, { queue: queues.dead });

        await broker.publish([
          work("Grüße", {
            exchange: exchanges.dead,
            routingKey: "a.key",
            body,
            headers: { "x-svc-reason": "später" },
          }),
        ]);

        await until(() => received.length === 1, { what: "the message" });
        const [message] = received;
        expect(message?.body.equals(body)).to.equal(true);
        expect(message).to.include({ messageId: "Grüße", routingKey: "a.key" });
        expect(message?.headers).to.deep.equal({ "x-svc-reason": "später" });
      });

      it("hands out an empty body and one of 200 kB", async () => {
        const large = Buffer.alloc(200_000, "large ");
        const { received } = await collect(ack);

        await broker.publish([work("empty", { body: Buffer.alloc(0) }), work("large", { body: large })]);

        await until(() => received.length === 2, { what: "both messages" });
        expect(received[0]?.body).to.have.length(0);
        expect(received[1]?.body.equals(large)).to.equal(true);
      });

      it("keeps the order of a queue", async () => {
        await broker.publish(numbered(300));

        const { received } = await collect(ack, { prefetch: 7 });

        await until(() => received.length === 300, { what: "all messages" });
        expect(ids(received)).to.deep.equal(numbered(300).map(({ messageId }) => messageId));
      });

      it("calls no handler from within publish", async () => {
        let isInPublish = false;
        const calledWithin: boolean[] = [];
        await collect((message) => {
          calledWithin.push(isInPublish);
          message.ack();
        });

        isInPublish = true;
        const publishing = broker.publish(numbered(3));
        isInPublish = false;
        await publishing;

        await until(() => calledWithin.length === 3, { what: "three messages" });
        expect(calledWithin).to.deep.equal([false, false, false]);
      });

      it("hands out no more than the prefetch, and one more for each that is settled", async () => {
        await broker.publish(numbered(10));

        const { received } = await collect(hold, { prefetch: 3 });

        await depthIs(7);
        expect(ids(received)).to.deep.equal(["m0", "m1", "m2"]);
        received[1]?.ack();
        await depthIs(6);
        await until(() => received.length === 4, { what: "the fourth message" });
        expect(received[3]?.messageId).to.equal("m3");
      });

      it("shares a queue between consumers", async () => {
        const one = await collect(hold, { prefetch: 2 });
        const other = await collect(hold, { prefetch: 2 });

        await broker.publish(numbered(4));

        await until(() => one.received.length === 2 && other.received.length === 2, {
          what: "two messages each",
        });
        expect([...ids(one.received), ...ids(other.received)].toSorted()).to.deep.equal([
          "m0",
          "m1",
          "m2",
          "m3",
        ]);
      });

      it("hands a requeued message out again", async () => {
        await broker.publish(numbered(3));
        let requeues = 0;
        const { received } = await collect(
          (message) =>
            message.messageId === "m0" && (requeues += 1) === 1 ? message.requeue() : message.ack(),
          { prefetch: 1 },
        );

        await until(() => received.length === 4, { what: "four messages" });

        // RabbitMQ 3 delivers it again behind waiting messages, RabbitMQ 4 before them.
        expect(ids(received).toSorted()).to.deep.equal(["m0", "m0", "m1", "m2"]);
        await depthIs(0);
      });

      it("accepts only the first settlement of a message, and leaves other unsettled messages unchanged", async () => {
        await broker.publish([work("held"), work("twice")]);
        const { received } = await collect((message) => {
          if (message.messageId === "held") return;
          message.ack();
          message.ack();
          message.requeue();
        });
        await until(() => received.length === 2, { what: "two messages" });

        await broker.publish([work("next")]);

        await until(() => ids(received).includes("next"), { what: "the next message" });
        received[0]?.ack();
        await depthIs(0);
        expect(ids(received)).to.deep.equal(["held", "twice", "next"]);
      });

      it("hands a message out again after its handler threw", async () => {
        await broker.publish([work("a")]);
        let calls = 0;
        const { received } = await collect((message) => {
          if ((calls += 1) === 1) throw new Error("a fault of the handler");
          message.ack();
        });

        await until(() => received.length === 2, { what: "the message again" });
        await depthIs(0);
      });

      it("hands out nothing after stop, and accepts the settlements of unsettled messages", async () => {
        await broker.publish(numbered(3));
        const { received, consumption } = await collect(hold, { prefetch: 2 });
        await until(() => received.length === 2, { what: "two messages in hand" });

        await consumption.stop();
        received[0]?.ack();
        received[1]?.requeue();

        await depthIs(2);
        expect(received).to.have.length(2);
        const later = await collect(ack);
        await until(() => later.received.length === 2, { what: "the other two" });
        await depthIs(0);
        expect(ids(later.received).toSorted()).to.deep.equal(["m1", "m2"]);
      });
    });

    describe("depth", () => {
      it("counts the waiting messages, not those handed out", async () => {
        await broker.publish(numbered(5));
        expect(await broker.depth(queues.first)).to.equal(5);

        await collect(hold, { prefetch: 2 });

        await depthIs(3);
      });

      it("rejects for a missing queue, and continues to answer", async () => {
        const failure = await broker.depth("svc.nowhere").catch((error: unknown) => error);

        expect(failure).to.be.instanceOf(Error);
        expect(await broker.depth(queues.first)).to.equal(0);
      });

      it("rejects after close", async () => {
        await broker.close();

        const failure = await broker.depth(queues.first).catch((error: unknown) => error);
        expect(failure).to.be.instanceOf(Error);
      });
    });
  });
}
