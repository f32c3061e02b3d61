import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { connect, type Channel } from "amqplib";
import { expect } from "chai";
import type { IncomingMessage } from "../../src/broker/broker.ts";
import { isMissingQueue } from "../../src/broker/consumer.ts";
import { connectRabbitMq } from "../../src/broker/rabbitmq.ts";
import { exchanges, lanes, queues } from "../../src/broker/topology.ts";
import { createLog } from "../../src/telemetry/log.ts";
import { purgeQueues } from "../support/queues.ts";
import { amqpUrl } from "../support/services.ts";
import { until } from "../support/wait.ts";

const log = createLog({ level: "silent" });

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

describe("startConsumption", () => {
  let url: string;

  before(async () => {
    url = await amqpUrl();
    await purgeQueues(url);
  });

  it("keeps no reference to a stopped consumer, such as one of a previous configuration", async () => {
    const broker = await connectRabbitMq({ url, log });
    async function consumeOnce(): Promise<WeakRef<object>> {
      const received: IncomingMessage[] = [];
      const options = {
        queue: queues.first,
        prefetch: 10,
        onMessage: (one: IncomingMessage) => void received.push(one),
      };
      const consumption = await broker.consume(options);
      await broker.publish([
        {
          exchange: exchanges.deliveries,
          routingKey: lanes.first,
          messageId: "last",
          body: Buffer.from("last"),
        },
      ]);
      await until(() => received.length === 1, { what: "the message" });
      await consumption.stop();
      received[0]?.ack();
      return new WeakRef(received);
    }

    const received = await consumeOnce();

    await until(
      () => {
        collectGarbage();
        return received.deref() === undefined;
      },
      { what: "the messages of the consumer to be free" },
    );
    await broker.close();
  });

  const refusals: readonly (readonly [what: string, boolean, (channel: Channel) => Promise<unknown>])[] = [
    ["a queue that is not there", true, (channel) => channel.checkQueue("svc.nowhere")],
    ["an exchange that is not there", false, (channel) => channel.bindQueue(queues.first, "svc.nowhere", "")],
    [
      "other arguments of a queue",
      false,
      (channel) => channel.assertQueue(queues.first, { autoDelete: true }),
    ],
  ];
  for (const [what, expected, ask] of refusals)
    it(`${expected ? "treats" : "does not treat"} the refusal of ${what} as a missing queue`, async () => {
      const connection = await connect(url);
      const channel = await connection.createChannel();
      channel.on("error", () => undefined);
      await channel.assertQueue(queues.first, { durable: true, arguments: { "x-queue-type": "quorum" } });

      const refusal = await ask(channel).catch((error: unknown) => error);

      expect(refusal).to.be.instanceOf(Error);
      expect(isMissingQueue(refusal), String(refusal)).to.equal(expected);
      await connection.close();
    });
});
