import { expect } from "chai";
import { connect, type Channel } from "amqplib";
import type { Broker } from "../../src/broker/broker.ts";
import { connectRabbitMq } from "../../src/broker/rabbitmq.ts";
import { exchanges, lanes, queues } from "../../src/broker/topology.ts";
import { OperatorError } from "../../src/kit/errors.ts";
import { createLog, type Log } from "../../src/telemetry/log.ts";
import { createMemoryLog } from "../support/http.ts";
import { freePort } from "../support/private-process.ts";
import { purgeQueues } from "../support/queues.ts";
import { amqpUrl } from "../support/services.ts";
import { until } from "../support/wait.ts";
import { receiveFirst, work } from "./receive.ts";

const log = createLog({ level: "silent" });

describe("connectRabbitMq", () => {
  let server: string;
  const brokers: Broker[] = [];

  before(async () => {
    server = await amqpUrl();
  });

  beforeEach(() => purgeQueues(server));

  afterEach(async () => {
    for (const broker of brokers.splice(0)) await broker.close();
  });

  after(() => purgeQueues(server));

  async function open(options: { upkeepIntervalMs?: number; log?: Log } = {}): Promise<Broker> {
    const broker = await connectRabbitMq({ url: server, log, ...options });
    brokers.push(broker);
    return broker;
  }

  /** Runs `act` on a connection that the broker client does not know. */
  async function interfere(act: (channel: Channel) => Promise<unknown>): Promise<void> {
    const connection = await connect(server);
    await act(await connection.createChannel());
    await connection.close();
  }

  it("refuses a URL of another kind without showing it", async () => {
    for (const url of ["http://user:secret@localhost", "not a URL: secret"]) {
      const failure = await connectRabbitMq({ url, log }).catch((error: unknown) => error);
      expect(failure).to.be.instanceOf(OperatorError);
      expect(String(failure)).not.to.include("secret");
    }
  });

  it("does not wait for a server that refuses the password", async () => {
    const url = new URL(server);
    url.password = "wrong";

    const failure = await connectRabbitMq({ url: url.href, log }).catch((error: unknown) => error);

    expect(failure).to.be.instanceOf(OperatorError);
    expect(String(failure)).to.include("RabbitMQ refuses the connection").and.include("ACCESS");
  });

  it("waits for a virtual host, and logs it", async () => {
    const { log: memory, lines } = createMemoryLog();
    const giveUp = new AbortController();
    const url = `${server.replace(/\/$/, "")}/nowhere`;
    const connecting = connectRabbitMq({ url, log: memory, signal: giveUp.signal }).catch(
      (error: unknown) => error,
    );

    await until(() => lines.some(({ reason }) => String(reason).includes("virtual host")), {
      what: "a line",
    });

    giveUp.abort(new Error("given up"));
    expect(String(await connecting)).to.equal("Error: given up");
  });

  it("stops waiting for a server when its signal aborts", async () => {
    const giveUp = new AbortController();
    const url = `amqp://127.0.0.1:${await freePort()}`;
    const connecting = connectRabbitMq({ url, log, signal: giveUp.signal });

    giveUp.abort(new Error("enough"));

    const failure = await connecting.catch((error: unknown) => error);
    expect(failure).to.be.instanceOf(Error).with.property("message", "enough");
  });

  it("waits longer after each failure to declare a queue that has other properties, and starts without it", async () => {
    await interfere(async (channel) => {
      await channel.deleteQueue(queues.retry);
      await channel.assertQueue(queues.retry, { durable: true });
    });
    const reasons: string[] = [];
    const toldAtMs: number[] = [];
    const onWait = (reason: string): void => {
      reasons.push(reason);
      toldAtMs.push(performance.now());
    };

    const connecting = connectRabbitMq({ url: server, log, onWait });
    await until(() => reasons.length > 3, { what: "four failures" });
    await interfere((channel) => channel.deleteQueue(queues.retry));
    brokers.push(await connecting);

    expect(reasons[0]).to.include("PRECONDITION_FAILED").and.include("svc.deliveries.retry");
    const gapsMs = toldAtMs.slice(1, 4).map((atMs, place) => atMs - (toldAtMs[place] ?? Infinity));
    // Each wait is at least half of the full one: 200, 400 and 800 ms. A timer may end 1 ms early.
    for (const [place, leastMs] of [99, 199, 399].entries()) expect(gapsMs[place]).to.be.at.least(leastMs);
  });

  it("answers unroutable when a binding is gone, and publishes the next message", async () => {
    const broker = await open();
    await interfere((channel) => channel.unbindQueue(queues.first, exchanges.deliveries, lanes.first));

    const lost = await broker.publish([work("a"), { ...work("b"), routingKey: lanes.retry }]);

    expect(lost).to.deep.equal([{ kind: "unconfirmed", reason: "unroutable" }, { kind: "confirmed" }]);
    await interfere((channel) => channel.bindQueue(queues.first, exchanges.deliveries, lanes.first));
    expect(await broker.publish([work("a")])).to.deep.equal([{ kind: "confirmed" }]);
  });

  it("answers unconfirmed for a message that AMQP cannot carry, and confirms the next ones", async () => {
    const broker = await open();
    const bad = { ...work("b"), routingKey: "x".repeat(256) };

    const outcomes = await broker.publish([work("a"), bad, work("c")]);

    const reason = "Field 'routingKey' is the wrong type; must be a string (up to 255 chars)";
    const confirmed = { kind: "confirmed" };
    expect(outcomes).to.deep.equal([confirmed, { kind: "unconfirmed", reason }, confirmed]);
    expect(await broker.publish([work("d")])).to.deep.equal([confirmed]);
  });

  const event = { ...work("e"), exchange: exchanges.events, routingKey: "posts.on_create" };

  it("restores a removed binding without a message to publish", async () => {
    const broker = await open({ upkeepIntervalMs: 50 });

    await interfere((channel) => channel.unbindQueue(queues.fanout, exchanges.events, "#"));

    await until(async () => (await broker.publish([event]))[0]?.kind === "confirmed", {
      what: "the binding",
    });
    expect(await broker.fault()).to.equal(undefined);
  });

  it("checks the topology at once when a message is returned", async () => {
    const broker = await open({ upkeepIntervalMs: 600_000 });
    await interfere((channel) => channel.unbindQueue(queues.fanout, exchanges.events, "#"));

    const [outcome] = await broker.publish([event]);

    expect(outcome).to.deep.equal({ kind: "unconfirmed", reason: "unroutable" });
    await until(async () => (await broker.publish([event]))[0]?.kind === "confirmed", {
      what: "the binding",
    });
  });

  it("has a fault while a queue is missing, and declares it again", async () => {
    const broker = await open({ upkeepIntervalMs: 50 });

    await interfere((channel) => channel.deleteQueue(queues.fanout));

    await until(async () => (await broker.fault())?.includes("no queue 'svc.fanout'") === true, {
      what: "the fault",
    });
    await until(async () => (await broker.fault()) === undefined, { what: "the end of it" });
    expect(await broker.publish([event])).to.deep.equal([{ kind: "confirmed" }]);
  });

  it("declares a queue that was deleted under its consumer, logs it, and continues to consume", async () => {
    const memory = createMemoryLog();
    const broker = await open({ log: memory.log });
    const received = await receiveFirst(broker);
    await broker.publish([work("before")]);
    await until(() => received.length === 1, { what: "the first message" });

    await interfere((channel) => channel.deleteQueue(queues.first));

    await until(async () => (await broker.publish([work("after")]))[0]?.kind === "confirmed", {
      what: "the queue to be there again",
    });
    await until(() => received.includes("after"), { what: "the message after" });
    const told = memory.lines.filter(({ queue }) => queue !== undefined);
    expect(told.map(({ queue, msg }) => [queue, msg])).to.deep.equal([
      [queues.first, "a queue was deleted in RabbitMQ, with its messages; declaring it again"],
    ]);
  });
});
