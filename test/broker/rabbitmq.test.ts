import { expect } from "chai";
import { connect, type Channel } from "amqplib";
import type { Broker, IncomingMessage, OutgoingMessage } from "../../src/broker/broker.ts";
import { connectRabbitMq } from "../../src/broker/rabbitmq.ts";
import { exchanges, lanes, queues } from "../../src/broker/topology.ts";
import { OperatorError } from "../../src/kit/errors.ts";
import { createLog, type Log } from "../../src/telemetry/log.ts";
import { createMemoryLog } from "../support/http.ts";
import { purgeQueues } from "../support/queues.ts";
import { startPrivateRabbitMq, type PrivateRabbitMq } from "../support/rabbitmq.ts";
import { until } from "../support/wait.ts";
import { receiveFirst } from "./receive.ts";

const log = createLog({ level: "silent" });

function work(messageId: string): OutgoingMessage {
  return { exchange: exchanges.deliveries, routingKey: lanes.first, messageId, body: Buffer.from(messageId) };
}

const untilConnected = (broker: Broker): Promise<unknown> =>
  until(() => broker.isConnected(), { what: "the connections to come back", timeoutMs: 40_000 });

describe("connectRabbitMq", () => {
  let server: PrivateRabbitMq;
  const brokers: Broker[] = [];

  before(async () => {
    server = await startPrivateRabbitMq();
  });

  beforeEach(() => purgeQueues(server.url));

  afterEach(async () => {
    for (const broker of brokers.splice(0)) await broker.close();
  });

  after(() => server.dispose());

  async function open(
    options: { publishTimeoutMs?: number; upkeepIntervalMs?: number; log?: Log } = {},
  ): Promise<Broker> {
    const broker = await connectRabbitMq({ url: server.url, log, ...options });
    brokers.push(broker);
    return broker;
  }

  /** Runs `act` on a connection that the broker client does not know. */
  async function interfere(act: (channel: Channel) => Promise<unknown>): Promise<void> {
    const connection = await connect(server.url);
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

  it("ends for a server that refuses the password", async () => {
    const url = new URL(server.url);
    url.password = "wrong";

    const failure = await connectRabbitMq({ url: url.href, log }).catch((error: unknown) => error);

    expect(failure).to.be.instanceOf(OperatorError);
    expect(String(failure)).to.include("RabbitMQ refuses the connection").and.include("ACCESS");
  });

  it("waits for a virtual host, and logs it", async () => {
    const { log: memory, lines } = createMemoryLog();
    const giveUp = new AbortController();
    const url = `${server.url.replace(/\/$/, "")}/nowhere`;
    const connecting = connectRabbitMq({ url, log: memory, signal: giveUp.signal }).catch(
      (error: unknown) => error,
    );

    await until(() => lines.some(({ reason }) => String(reason).includes("virtual host")), {
      what: "a line",
    });

    giveUp.abort(new Error("given up"));
    expect(String(await connecting)).to.equal("Error: given up");
  });

  it("names its two connections for operators", async () => {
    await open();

    const connections = await server.ctl("list_connections", "client_properties");

    expect(connections).to.include("svc publisher").and.include("svc consumer");
  });

  it("puts persistent JSON with a time into quorum queues", async () => {
    const broker = await open();
    await broker.publish([work("a")]);

    const connection = await connect(server.url);
    const channel = await connection.createChannel();
    const message = await channel.get(queues.first, { noAck: true });
    await connection.close();

    if (message === false) throw new Error("the queue is empty");
    expect(message.properties).to.include({
      deliveryMode: 2,
      contentType: "application/json",
      messageId: "a",
    });
    expect(Math.abs(Number(message.properties.timestamp) - Date.now() / 1_000)).to.be.below(60);
    const listed = await server.ctl("list_queues", "name", "type", "durable");
    for (const name of Object.values(queues))
      expect(listed).to.match(new RegExp(`^${name}\\s+quorum\\s+true$`, "m"));
  });

  it("answers unroutable when a binding is gone, and publishes the next message", async () => {
    const broker = await open();
    await interfere((channel) => channel.unbindQueue(queues.first, exchanges.deliveries, lanes.first));

    const lost = await broker.publish([work("a"), { ...work("b"), routingKey: lanes.retry }]);

    expect(lost).to.deep.equal([{ kind: "unconfirmed", reason: "unroutable" }, { kind: "confirmed" }]);
    await interfere((channel) => channel.bindQueue(queues.first, exchanges.deliveries, lanes.first));
    expect(await broker.publish([work("a")])).to.deep.equal([{ kind: "confirmed" }]);
  });

  const event: OutgoingMessage = { ...work("e"), exchange: exchanges.events, routingKey: "posts.on_create" };

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

  it("continues to consume when the connections are closed, and loses no confirmed message", async () => {
    const broker = await open();
    const messages = Array.from({ length: 400 }, (_, index) => work(`m${index}`));
    const outcomes = await broker.publish(messages);
    expect(outcomes.every(({ kind }) => kind === "confirmed")).to.equal(true);
    const acknowledged = new Set<string>();
    const inHand: IncomingMessage[] = [];
    let isPaused = true;
    await broker.consume({
      queue: queues.first,
      prefetch: 50,
      onMessage(message) {
        if (isPaused) inHand.push(message);
        else {
          acknowledged.add(message.messageId);
          message.ack();
        }
      },
    });
    await until(() => inHand.length === 50, { what: "messages in hand" });

    // On a busy machine, the next connection is there before the command has ended. Messages that
    // it brings must be settled, since there are no more than `prefetch` until then.
    const closing = server.ctl("close_all_connections", "a test");
    await until(() => !broker.isConnected(), { what: "the loss to be noticed" });
    isPaused = false;
    await closing;
    await until(() => acknowledged.size > 0, { what: "messages on the new connection" });
    // Their tags belong to the lost channel. On the new one they would settle other messages, or
    // close it.
    for (const message of inHand) message.ack();

    await until(() => acknowledged.size === 400, { what: "every message" });
    await untilConnected(broker);
    await until(async () => (await broker.depth(queues.first)) === 0, { what: "an empty queue" });
    expect(await broker.publish([work("later")])).to.deep.equal([{ kind: "confirmed" }]);
  });

  it("answers unconfirmed while the server is killed, and loses no confirmed message", async () => {
    const broker = await open();
    const confirmed = new Set<string>();
    const reasons = new Set<string>();
    let isOver = false;
    const publishing = (async () => {
      for (let turn = 0; !isOver; turn += 1) {
        const batch = Array.from({ length: 20 }, (_, index) => work(`t${turn}-${index}`));
        const outcomes = await broker.publish(batch);
        outcomes.forEach((outcome, index) => {
          if (outcome.kind === "confirmed") confirmed.add(batch[index]?.messageId ?? "");
          else reasons.add(outcome.reason);
        });
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    })();
    try {
      await until(() => confirmed.size > 200, { what: "confirms before" });
      await server.kill();
      await until(() => reasons.size > 0, { what: "unconfirmed messages" });
      const confirmedBefore = confirmed.size;
      await server.start();
      await until(() => confirmed.size > confirmedBefore + 200, {
        what: "confirms after",
        timeoutMs: 40_000,
      });
    } finally {
      isOver = true;
      await publishing;
    }

    expect([...reasons]).to.include("not connected to RabbitMQ");
    const received = new Set<string>();
    await broker.consume({
      queue: queues.first,
      prefetch: 200,
      onMessage(message) {
        received.add(message.messageId);
        message.ack();
      },
    });
    await until(() => [...confirmed].every((id) => received.has(id)), { what: "every confirmed message" });
  });

  it("resumes consuming after the server was stopped and started", async () => {
    const broker = await open();
    const received = await receiveFirst(broker);

    await server.stop();
    await until(() => !broker.isConnected(), { what: "the loss to be noticed" });
    expect(await broker.publish([work("a")])).to.deep.equal([
      { kind: "unconfirmed", reason: "not connected to RabbitMQ" },
    ]);
    const failure = await broker.depth(queues.first).catch((error: unknown) => error);
    expect(failure).to.be.instanceOf(Error);
    await server.start();

    await untilConnected(broker);
    expect(await broker.publish([work("b")])).to.deep.equal([{ kind: "confirmed" }]);
    await until(() => received.includes("b"), { what: "the message" });
  });

  it("answers unconfirmed at the deadline when the server hangs, and publishes again when it continues", async () => {
    const broker = await open({ publishTimeoutMs: 400 });
    server.pause();
    try {
      // On a busy machine, the server runs for a moment after the signal.
      const outcome = await until(
        async () => {
          const [one] = await broker.publish([work("a")]);
          return one?.kind === "unconfirmed" && one;
        },
        { what: "a confirm that does not come" },
      );
      expect(outcome.reason).to.equal("no confirm within 400 ms");
    } finally {
      server.resume();
    }

    await until(async () => (await broker.publish([work("b")]))[0]?.kind === "confirmed", {
      what: "a confirm",
    });
  });

  it("publishes nothing during an alarm, but still acknowledges", async () => {
    const broker = await open({ publishTimeoutMs: 1_000 });
    await broker.publish([work("a"), work("b")]);
    await server.ctl("set_vm_memory_high_watermark", "0.00001");
    try {
      const blocked = await until(
        async () => {
          const [outcome] = await broker.publish([work("late")]);
          return (
            outcome?.kind === "unconfirmed" &&
            outcome.reason.startsWith("RabbitMQ takes no messages") &&
            outcome
          );
        },
        { what: "the alarm to be noticed" },
      );
      expect(blocked.reason).to.include("memory");
      expect(broker.isConnected()).to.equal(false);
      expect(await broker.fault()).to.equal(blocked.reason);

      await broker.consume({ queue: queues.first, prefetch: 10, onMessage: (message) => message.ack() });
      await until(async () => (await broker.depth(queues.first)) === 0, { what: "an empty queue" });
    } finally {
      await server.ctl("set_vm_memory_high_watermark", "0.4");
    }

    await until(async () => (await broker.publish([work("c")]))[0]?.kind === "confirmed", {
      what: "a confirm",
    });
  });

  it("reports no alarm of a server that is down", async () => {
    const broker = await open();
    await server.ctl("set_vm_memory_high_watermark", "0.00001");
    await until(
      async () => {
        await broker.publish([work("late")]);
        return (await broker.fault())?.startsWith("RabbitMQ takes no messages");
      },
      { what: "the alarm to be noticed" },
    );

    // Its next start has no such limit.
    await server.stop();

    try {
      await until(async () => (await broker.fault()) === "not connected to RabbitMQ", {
        what: "the lost connection",
        timeoutMs: 5_000,
      });
    } finally {
      await server.start();
    }
    await untilConnected(broker);
  });

  it("waits for a server that is not up yet, with warnings without a password", async () => {
    await server.stop();
    const lines: string[] = [];
    const listening = {
      ...log,
      warn: (facts: object, text: string) => lines.push(JSON.stringify(facts) + text),
    };
    const connecting = connectRabbitMq({
      url: server.url,
      log: Object.assign(Object.create(log), listening),
    });
    await until(() => lines.length >= 2, { what: "two warnings" });
    await server.start();

    brokers.push(await connecting);

    expect(lines[0])
      .to.include("waiting for RabbitMQ")
      .and.include("ECONNREFUSED")
      .and.include(new URL(server.url).host);
    expect(lines.join("\n")).not.to.include(new URL(server.url).password);
  });

  it("stops waiting for a server when its signal aborts", async () => {
    await server.stop();
    const giveUp = new AbortController();
    const connecting = connectRabbitMq({ url: server.url, log, signal: giveUp.signal });

    giveUp.abort(new Error("enough"));

    const failure = await connecting.catch((error: unknown) => error);
    expect(failure).to.be.instanceOf(Error).with.property("message", "enough");
    await server.start();
  });
});
