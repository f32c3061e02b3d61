import { expect } from "chai";
import { connect } from "amqplib";
import type { Broker, IncomingMessage, OutgoingMessage } from "../../src/broker/broker.ts";
import { connectRabbitMq } from "../../src/broker/rabbitmq.ts";
import { exchanges, queues } from "../../src/broker/topology.ts";
import { createLog } from "../../src/telemetry/log.ts";
import { createMemoryLog } from "../support/http.ts";
import { purgeQueues } from "../support/queues.ts";
import { startPrivateRabbitMq, type PrivateRabbitMq } from "../support/rabbitmq.ts";
import { until } from "../support/wait.ts";
import { receiveFirst, work } from "./receive.ts";

const log = createLog({ level: "silent" });

const untilConnected = (broker: Broker): Promise<unknown> =>
  until(() => broker.isConnected(), { what: "the connections to come back", timeoutMs: 40_000 });

const untilAlarm = (broker: Broker): Promise<string> =>
  until(
    async () => {
      const [outcome] = await broker.publish([work("late")]);
      return (
        outcome?.kind === "unconfirmed" &&
        outcome.reason.startsWith("RabbitMQ takes no messages") &&
        outcome.reason
      );
    },
    { what: "the alarm to be noticed" },
  );

function sized(size: number): OutgoingMessage {
  return { ...work(String(size)), body: Buffer.alloc(size) };
}

/** Returns a text as Erlang writes its bytes. */
const bytes = (text: string): string => `<<${[...Buffer.from(text)].join(",")}>>`;

/** Tests that control the server: its connections, its limits, its users and its end. */
describe("connectRabbitMq, on a server of its own", () => {
  let server: PrivateRabbitMq;
  const brokers: Broker[] = [];

  before(async () => {
    server = await startPrivateRabbitMq();
  });

  afterEach(async () => {
    for (const broker of brokers.splice(0)) await broker.close();
  });

  after(() => server.dispose());

  async function open(options: { publishTimeoutMs?: number; url?: string } = {}): Promise<Broker> {
    const broker = await connectRabbitMq({ url: server.url, log, ...options });
    brokers.push(broker);
    return broker;
  }

  describe("that is up", () => {
    beforeEach(() => purgeQueues(server.url));

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

      // On a busy machine, the next connection may be open before the command has ended. Its
      // messages must be settled, because no more than `prefetch` come before that.
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
        const reason = await untilAlarm(broker);
        expect(reason).to.include("memory");
        expect(broker.isConnected()).to.equal(false);
        expect(await broker.fault()).to.equal(reason);

        await broker.consume({ queue: queues.first, prefetch: 10, onMessage: (message) => message.ack() });
        await until(async () => (await broker.depth(queues.first)) === 0, { what: "an empty queue" });
      } finally {
        await server.ctl("set_vm_memory_high_watermark", "0.4");
      }

      await until(async () => (await broker.publish([work("c")]))[0]?.kind === "confirmed", {
        what: "a confirm",
      });
    });

    it("waits for missing rights, names them, and starts when they are granted", async () => {
      await server.ctl("add_user", "limited", "a password");
      await server.ctl("set_permissions", "limited", "^svc\\.events$", "^svc\\.", "^svc\\.");
      const reasons: string[] = [];
      const onWait = (reason: string): void => void reasons.push(reason);
      const connecting = connectRabbitMq({ url: urlOf("limited", "a password"), log, onWait });

      await until(() => reasons.length > 0, { what: "a reason" });
      // The rights of the user in docs/production.md.
      await server.ctl("set_permissions", "limited", "^svc\\.", "^svc\\.", "^svc\\.");
      const broker = await connecting;
      brokers.push(broker);

      const event = { ...work("a"), exchange: exchanges.events, routingKey: "a.on_create" };
      expect(reasons[0]).to.match(/ACCESS_REFUSED - .*'svc\.deliveries'.*'limited'/);
      expect(await broker.publish([event])).to.deep.equal([{ kind: "confirmed" }]);
    });

    it("signs in with a user and a password beyond ASCII, as a URL encodes them", async () => {
      const [user, password] = ["jürgen", "pä%ß €"];
      await server.ctl(
        "eval",
        `rabbit_auth_backend_internal:add_user(${bytes(user)}, ${bytes(password)}, <<"test">>), ` +
          `rabbit_auth_backend_internal:set_permissions(${bytes(user)}, <<"/">>, <<".*">>, <<".*">>, <<".*">>, <<"test">>).`,
      );

      const broker = await open({ url: urlOf(encodeURIComponent(user), encodeURIComponent(password)) });

      expect(broker.isConnected()).to.equal(true);
    });

    it("learns a smaller max_message_size, and loses no other message with a larger one", async () => {
      await limitMessages(1_000);
      try {
        const broker = await open();
        await broker.publish([sized(1_001)]);
        await untilConnected(broker);

        const outcomes = await broker.publish([sized(1_001), sized(1_000)]);

        expect(outcomes.map(({ kind }) => kind)).to.deep.equal(["unconfirmed", "confirmed"]);
      } finally {
        await limitMessages(134_217_728);
      }
    });
  });

  /** Also sets it where later versions of RabbitMQ keep it. */
  function limitMessages(size: number): Promise<string> {
    const key = "max_message_size";
    return server.ctl(
      "eval",
      `application:set_env(rabbit, ${key}, ${size}), persistent_term:put(${key}, ${size}).`,
    );
  }

  function urlOf(user: string, password: string): string {
    const url = new URL(server.url);
    [url.username, url.password] = [user, password];
    return url.href;
  }

  /** The tests build on one another, because a start of the server takes 5 s of CPU. */
  describe("that stops during an alarm, and starts again", () => {
    const { log: memory, lines } = createMemoryLog();
    let broker: Broker;
    let received: readonly string[];
    let waiting: Promise<Broker>;

    before(async () => {
      await purgeQueues(server.url);
      broker = await connectRabbitMq({ url: server.url, log, publishTimeoutMs: 1_000 });
      received = await receiveFirst(broker);
      await server.ctl("set_vm_memory_high_watermark", "0.00001");
      await untilAlarm(broker);
      // Its next start has no such limit.
      await server.stop();
      waiting = connectRabbitMq({ url: server.url, log: memory });
    });

    after(() => Promise.all([broker, waiting].map(async (one) => (await one)?.close())));

    it("is reported as not connected, without the alarm", async () => {
      await until(async () => (await broker.fault()) === "not connected to RabbitMQ", {
        what: "the lost connection",
        timeoutMs: 5_000,
      });
    });

    it("confirms nothing meanwhile, and has no depth", async () => {
      expect(await broker.publish([work("a")])).to.deep.equal([
        { kind: "unconfirmed", reason: "not connected to RabbitMQ" },
      ]);
      const failure = await broker.depth(queues.first).catch((error: unknown) => error);
      expect(failure).to.be.instanceOf(Error);
    });

    it("is awaited by a new client, with warnings without a password", async () => {
      await until(() => lines.length >= 2, { what: "two warnings" });

      expect(lines[0]).to.include({ level: 40, msg: "waiting for RabbitMQ" });
      expect(String(lines[0]?.["reason"])).to.include("ECONNREFUSED").and.include(new URL(server.url).host);
      expect(JSON.stringify(lines)).not.to.include(new URL(server.url).password);
    });

    it("serves its consumer again when it is back, and the waiting client", async () => {
      await server.start();

      await untilConnected(broker);
      expect(await broker.publish([work("b")])).to.deep.equal([{ kind: "confirmed" }]);
      await until(() => received.includes("b"), { what: "the message" });
      await untilConnected(await waiting);
    });
  });
});
