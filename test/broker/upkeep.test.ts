import { connect, type ConfirmChannel } from "amqplib";
import { expect } from "chai";
import { openLink, type Link } from "../../src/broker/link.ts";
import { exchanges, queues } from "../../src/broker/topology.ts";
import { startUpkeep, type Upkeep } from "../../src/broker/upkeep.ts";
import { createMemoryLog } from "../support/http.ts";
import { purgeQueues } from "../support/queues.ts";
import { amqpUrl } from "../support/services.ts";
import { until } from "../support/wait.ts";

const { log, lines } = createMemoryLog();

describe("startUpkeep", () => {
  let url: string;
  let link: Link;
  let upkeep: Upkeep;
  /** A connection that the upkeep does not know. */
  let other: ConfirmChannel;
  let close: () => Promise<unknown>;

  before(async () => {
    url = await amqpUrl();
    link = await openLink({ url, name: "svc consumer", log });
    // Declared after the topology.
    await new Promise<void>((resolve) =>
      link.keepChannel({ open: (one) => one.createChannel(), setUp: async () => resolve() }),
    );
    const connection = await connect(url);
    other = await connection.createConfirmChannel();
    close = () => connection.close();
    // Runs only on request.
    upkeep = startUpkeep({ link, intervalMs: 600_000, log });
  });
  after(async () => {
    await close?.();
    await upkeep?.stop();
    await link?.close();
    await purgeQueues(url);
  });

  /** Returns whether a queue accepts an event. */
  async function isTaken(): Promise<boolean> {
    let isReturned = false;
    const note = (): void => void (isReturned = true);
    other.on("return", note);
    other.publish(exchanges.events, "notes.on_create", Buffer.from("{}"), { mandatory: true });
    await other.waitForConfirms();
    other.off("return", note);
    return !isReturned;
  }

  it("has no fault only while the queue of events is bound", async () => {
    await other.unbindQueue(queues.fanout, exchanges.events, "#");
    expect(await isTaken()).to.equal(false);

    expect(await upkeep.fault()).to.equal(undefined);

    expect(await isTaken()).to.equal(true);
  });

  it("has a fault while an exchange is missing, and declares it soon", async () => {
    lines.splice(0);
    await other.deleteExchange(exchanges.events);

    expect(await upkeep.fault()).to.include("no exchange 'svc.events' in vhost");

    await until(async () => (await upkeep.fault()) === undefined, { what: "the exchange" });
    expect(await isTaken()).to.equal(true);
    await upkeep.fault();
    const told = lines.map(({ msg }) => String(msg)).filter((msg) => msg.includes("exchange"));
    expect(told).to.deep.equal([
      "an exchange, queue or binding is missing in RabbitMQ",
      "RabbitMQ has all exchanges, queues and bindings again",
    ]);
  });
});
