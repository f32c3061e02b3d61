import { expect } from "chai";
import { ResultTooLargeError } from "../../src/db/result-limit.ts";
import { numbers, present, presented, useRelayScene } from "../support/relay-scene.ts";
import { until } from "../support/wait.ts";

describe("createRelay, of large events that failed", () => {
  const scene = useRelayScene();
  const { start, fanOut, untilPublished } = scene;

  it("reads a megabyte at a time for repeated publishes, and loses none", async () => {
    scene.stoppedAtMs = performance.now();
    scene.broker.refuses = () => true;
    for (let n = 0; n < 20; n += 1) await scene.work.addEvent({ snapshot: { text: "a".repeat(300_000) } });
    let most = 0;
    start({
      batchSize: 70,
      present(resource, events) {
        most = Math.max(most, events.length);
        return present(resource, events);
      },
    });
    await untilPublished(20);
    await fanOut();

    scene.broker.refuses = () => false;
    await until(
      async () => {
        // With larger steps, events that a busy machine has not fanned out would count as lost.
        scene.skewMs += 200;
        return (await scene.work.outbox()).length === 0;
      },
      { what: "all of them" },
    );

    expect(most).to.equal(4);
  });

  it("has few megabytes in flight of messages that are larger than their records, and leaves room for another owner", async () => {
    const text = "x".repeat(500_000);
    const bytes = (): number => scene.broker.published.reduce((sum, { body }) => sum + body.length, 0);
    await scene.addEvents(20, "notes", "1");
    start({
      batchSize: 70,
      async present(_, events) {
        const answers = events.map(({ ownerId }) => presented(ownerId === "1" ? text : "small"));
        return { kind: "each", answers };
      },
    });
    await untilPublished(4);
    await scene.untilTurns(20);
    expect(bytes()).to.be.within(2_000_000, 4 * 1024 ** 2);

    await scene.work.addEvent({ ownerId: "2", recordId: "theirs" });
    await until(() => scene.published().includes("theirs"), { what: "the event of another" });
    await fanOut();

    await until(
      async () => {
        scene.skewMs += 100;
        return (await scene.work.outbox()).length === 0;
      },
      { what: "all of them", timeoutMs: 30_000 },
    );
    expect(new Set(scene.published()).size).to.equal(21);
  });

  for (const [which, costly, mostBytes] of [
    ["resources", [], 4 * 1024 ** 2],
    ["costly resources", numbers(20), 40 * 1024 ** 2],
  ] as const)
    it(`has few megabytes in flight, however many ${which} have one large message each`, async () => {
      const resources = numbers(20);
      const text = "x".repeat(3_000_000);
      const bytes = (): number => scene.broker.published.reduce((sum, { body }) => sum + body.length, 0);
      for (const resource of resources) await scene.work.addEvent({ resource, recordId: resource });
      let presents = 0;
      start({
        batchSize: 70,
        resources,
        costly,
        async present(_, events) {
          presents += events.length;
          return { kind: "each", answers: events.map(() => presented(text)) };
        },
      });
      await untilPublished(2);
      await until(() => presents >= 20, { what: "every record" });
      await scene.untilChecks(2);
      expect(bytes()).to.be.below(mostBytes + 3_100_000);

      await fanOut();
      await until(
        async () => {
          scene.skewMs += 100;
          return (await scene.work.outbox()).length === 0;
        },
        { what: "all of them", timeoutMs: 30_000 },
      );
      expect(new Set(scene.published()).size).to.equal(20);
      // Messages without capacity are made once more, but not at each turn.
      expect(presents).to.be.below(60);
    });

  it("omits an event whose rows are larger as text than a connection may read, and publishes the others", async () => {
    // PostgreSQL keeps such a number in 16 bytes, and writes it as 309 digits.
    await scene.work.addEvent({ recordId: "long", snapshot: { list: Array<number>(115_000).fill(1e308) } });
    await scene.work.addEvent({ recordId: "short" });
    start();

    await scene.untilLine("relay.too_large");
    await untilPublished(1);
    expect(scene.published()).to.deep.equal(["short"]);
  });

  it("presents each alone when they are too large together, and refuses only a single one that is too large", async () => {
    for (const recordId of ["1", "large", "2"]) await scene.work.addEvent({ recordId });
    scene.stoppedAtMs = performance.now();
    start({
      present: (resource, events) =>
        events.length > 1 || events[0]?.recordId === "large"
          ? Promise.reject(new ResultTooLargeError(1))
          : present(resource, events),
    });

    await untilPublished(2);
    expect(scene.published()).to.deep.equal(["1", "2"]);
    expect(await scene.untilLine("relay.refused")).to.include({ events: 1 });
  });
});
