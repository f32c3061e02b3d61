import { expect } from "chai";
import type { Broker, OutgoingMessage } from "../../src/broker/broker.ts";
import { openLink } from "../../src/broker/link.ts";
import { connectRabbitMq } from "../../src/broker/rabbitmq.ts";
import { exchanges, lanes } from "../../src/broker/topology.ts";
import { createLog } from "../../src/telemetry/log.ts";
import { createMemoryLog } from "../support/http.ts";
import { type Proxy, startProxy, through } from "../support/proxy.ts";
import { purgeQueues } from "../support/queues.ts";
import { amqpUrl } from "../support/services.ts";
import { until } from "../support/wait.ts";
import { receiveFirst } from "./receive.ts";

const log = createLog({ level: "silent" });

const work: OutgoingMessage = {
  exchange: exchanges.deliveries,
  routingKey: lanes.first,
  messageId: "a",
  body: Buffer.from("a"),
};

describe("connectRabbitMq, when the network drops everything", () => {
  let proxy: Proxy;
  let url: string;
  const brokers: Broker[] = [];

  before(async () => {
    const server = await amqpUrl();
    await purgeQueues(server);
    proxy = await startProxy(server);
    // One second in place of five, so that the test sees it.
    url = `${through(proxy, server)}?heartbeat=1`;
  });

  afterEach(() => proxy.resume());

  after(async () => {
    for (const broker of brokers) await broker.close();
    await proxy.close();
    await purgeQueues(await amqpUrl());
  });

  it("detects it within about two heartbeats, confirms nothing meanwhile, and reconnects", async () => {
    const broker = await connectRabbitMq({ url, log, publishTimeoutMs: 300 });
    brokers.push(broker);
    const received = await receiveFirst(broker);
    expect(await broker.publish([work])).to.deep.equal([{ kind: "confirmed" }]);
    proxy.stall();

    const [outcome] = await broker.publish([work]);
    await until(() => !broker.isConnected(), { what: "the loss to be noticed" });

    expect(outcome?.kind).to.equal("unconfirmed");
    proxy.resume();
    await until(() => broker.isConnected(), { what: "new connections", timeoutMs: 30_000 });
    const before = received.length;
    expect(await broker.publish([work])).to.deep.equal([{ kind: "confirmed" }]);
    await until(() => received.length > before, { what: "the message" });
  });

  it("answers a request although the close of the channel is never confirmed", async () => {
    const link = await openLink({ url, name: "svc test", log });
    try {
      await until(() => link.isUp(), { what: "a connection" });

      const answer = await link.ask(async () => {
        proxy.stall();
        return "yes";
      });

      expect(answer).to.equal("yes");
    } finally {
      proxy.resume();
      await link.close();
    }
  });

  it("abandons a connection without a greeting, and retries", async () => {
    const { log: memory, lines } = createMemoryLog();
    proxy.stall();
    const connecting = connectRabbitMq({ url, log: memory });

    await until(() => lines.some(({ msg }) => msg === "waiting for RabbitMQ"), {
      what: "the first try to be given up",
      timeoutMs: 20_000,
    });
    proxy.resume();

    const broker = await connecting;
    brokers.push(broker);
    // The proxy also drops bytes of the first try, so a connection may be lost once more.
    await until(() => broker.isConnected(), { what: "the connections", timeoutMs: 20_000 });
    expect(await broker.publish([work])).to.deep.equal([{ kind: "confirmed" }]);
  });
});
