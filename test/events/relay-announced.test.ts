import { expect } from "chai";
import { until } from "../support/wait.ts";
import { never, numbers, useRelayScene } from "../support/relay-scene.ts";

describe("createRelay, with events that the capture announces", () => {
  const scene = useRelayScene();
  const { start, announce, addEvents, published, untilPublished, fanOut } = scene;

  /** Adds events to the outbox, and returns the details that the capture would send. */
  async function captured(...given: Parameters<typeof addEvents>): Promise<readonly string[]> {
    await addEvents(...given);
    const rows = await scene.core.sql<{ readonly id: string }>(
      "SELECT event_id AS id FROM svc.outbox ORDER BY event_id DESC LIMIT $1",
      [given[0]],
    );
    const events = await scene.outbox.find(rows.map(({ id }) => id));
    return events.map((event) => JSON.stringify(event));
  }

  let reads = 0;
  /** Starts a relay that reads the outbox only when it is woken. */
  async function startResting(overrides: Parameters<typeof start>[0] = {}): Promise<void> {
    reads = 0;
    start({
      pollIntervalMs: never,
      outbox: {
        ...scene.outbox,
        read: (options) => scene.outbox.read(options).finally(() => (reads += 1)),
      },
      ...overrides,
    });
    await untilRead(2);
  }
  const untilRead = (count: number): Promise<unknown> =>
    until(() => reads >= count, { what: `${count} reads of the outbox` });

  it("publishes them at once, without a read, and no second time", async () => {
    await startResting();
    const details = await captured(3);

    announce(...details);
    await untilPublished(3);
    announce("");
    await untilRead(3);

    expect(reads).to.equal(3);
    expect(published()).to.deep.equal(numbers(3));
  });

  it("reads what a message only hints at", async () => {
    await startResting();
    const [first = ""] = await captured(2);

    announce(first, "");
    await untilPublished(2);

    expect(published()).to.deep.equal(numbers(2));
  });

  it("publishes them again when the broker loses them", async () => {
    await startResting({ pollIntervalMs: 5, broker: { ...scene.broker, depth: async () => 0 } });
    announce(...(await captured(1)));
    await untilPublished(1);

    await until(() => ((scene.skewMs += 100), published().length > 1), { what: "the second message" });
    expect(published()).to.deep.equal(["1", "1"]);
  });

  it("lets an owner have as many of them in flight as are left free, like a read", async () => {
    await startResting({ batchSize: 1_000 });
    const details = await captured(600, "notes", "1");
    announce(...details.slice(0, 500));
    await untilPublished(500);
    announce(...details.slice(500));
    await untilRead(3);
    expect(published()).to.have.length(500);

    announce(...(await captured(1, "notes", "2")));
    await untilPublished(501);
    await fanOut();
    await until(() => (announce(""), (scene.skewMs += 100), published().length >= 601), {
      what: "the others",
      timeoutMs: 50_000,
    });
  });
});
