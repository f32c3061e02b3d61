import { expect } from "chai";
import type { Broker, OutgoingMessage } from "../../src/broker/broker.ts";
import { connectRabbitMq } from "../../src/broker/rabbitmq.ts";
import { exchanges, lanes } from "../../src/broker/topology.ts";
import { createLog } from "../../src/telemetry/log.ts";
import { startPrivateRabbitMq, type PrivateRabbitMq } from "../support/rabbitmq.ts";
import { until } from "../support/wait.ts";

function messageOf(bytes: number): OutgoingMessage {
  const [exchange, routingKey] = [exchanges.deliveries, lanes.first];
  return { exchange, routingKey, messageId: String(bytes), body: Buffer.alloc(bytes) };
}

describe("connectRabbitMq on a server with a smaller max_message_size", () => {
  let server: PrivateRabbitMq;
  let broker: Broker;

  before(async () => {
    server = await startPrivateRabbitMq({ settings: ["max_message_size = 1000"] });
    broker = await connectRabbitMq({ url: server.url, log: createLog({ level: "silent" }) });
  });

  after(async () => {
    await broker.close();
    await server.dispose();
  });

  it("learns the size, and loses no other message with a larger one", async () => {
    await broker.publish([messageOf(1_001)]);
    await until(() => broker.isConnected(), { what: "another channel", timeoutMs: 40_000 });

    const outcomes = await broker.publish([messageOf(1_001), messageOf(1_000)]);

    expect(outcomes.map(({ kind }) => kind)).to.deep.equal(["unconfirmed", "confirmed"]);
  });
});
