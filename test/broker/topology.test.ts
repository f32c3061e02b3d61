import { expect } from "chai";
import { connect, type ChannelModel } from "amqplib";
import { declareTopology, topology } from "../../src/broker/topology.ts";
import { amqpUrl } from "../support/services.ts";

describe("topology", () => {
  it("has the names and kinds of the contract", () => {
    expect(topology.exchanges).to.deep.equal([
      { name: "svc.events", kind: "topic" },
      { name: "svc.deliveries", kind: "direct" },
      { name: "svc.dead", kind: "fanout" },
    ]);
    expect(topology.bindings).to.deep.equal([
      { exchange: "svc.events", queue: "svc.fanout", key: "#" },
      { exchange: "svc.deliveries", queue: "svc.deliveries.first", key: "first" },
      { exchange: "svc.deliveries", queue: "svc.deliveries.retry", key: "retry" },
      { exchange: "svc.dead", queue: "svc.dead", key: "" },
    ]);
    expect(topology.queues.map(({ name }) => name)).to.have.members(
      topology.bindings.map(({ queue }) => queue),
    );
  });
});

describe("declareTopology", () => {
  let connection: ChannelModel;

  before(async () => {
    connection = await connect(await amqpUrl());
  });

  after(() => connection.close());

  it("changes nothing the second time", async () => {
    const channel = await connection.createChannel();
    await declareTopology(channel);
    await declareTopology(channel);

    for (const { name } of topology.queues) expect((await channel.checkQueue(name)).queue).to.equal(name);
    await channel.close();
  });

  it("makes quorum queues: RabbitMQ refuses another declaration", async () => {
    for (const { name } of topology.queues) {
      const channel = await connection.createChannel();
      channel.on("error", () => undefined);
      const failure = await channel.assertQueue(name, { durable: true }).catch((error: unknown) => error);
      expect(failure).to.have.property("code", 406);
    }
  });

  it("makes durable exchanges", async () => {
    for (const { name, kind } of topology.exchanges) {
      const channel = await connection.createChannel();
      channel.on("error", () => undefined);
      const failure = await channel
        .assertExchange(name, kind, { durable: false })
        .catch((error: unknown) => error);
      expect(failure).to.have.property("code", 406);
    }
  });
});
