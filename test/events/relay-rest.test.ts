import { expect } from "chai";
import { numbers, present, presented, useRelayScene } from "../support/relay-scene.ts";
import { until } from "../support/wait.ts";

// Resources that rest after events of them have failed by themselves; relay.test.ts has the rest.
describe("createRelay, of a resource that fails as a whole after events of it have failed", () => {
  const scene = useRelayScene();
  const { start, addEvents, published, untilPublished, untilTurns } = scene;
  const refused = { kind: "refused", reason: "no price for this one" } as const;
  const broken = { kind: "none", reason: "no scope", isPassing: false } as const;
  const pauses = (): readonly unknown[] =>
    scene.lines.flatMap((line) => (line["event"] === "relay.resting" ? [line["retryInMs"]] : []));
  let state: "refusing" | "broken" | "well";
  let tries: number;
  const presentAs: typeof present = async (resource, events) => {
    tries += events.length;
    if (state === "broken") return broken;
    return state === "well"
      ? present(resource, events)
      : { kind: "each", answers: events.map(() => refused) };
  };
  beforeEach(() => {
    scene.stoppedAtMs = performance.now();
    [state, tries] = ["refusing", 0];
  });

  it("rests once for all of these, and publishes them when it is well again", async () => {
    await addEvents(40);
    start({ present: presentAs });
    await until(() => tries === 40, { what: "the first tries" });

    state = "broken";
    scene.skewMs += 1_000;
    await untilTurns(20);
    expect(pauses()).to.deep.equal([1_000]);

    state = "well";
    scene.skewMs += 2_000;
    await untilPublished(40);
    expect(published().toSorted()).to.deep.equal(numbers(40).toSorted());
  });

  it("rests ever longer, though the oldest are known to have failed by themselves", async () => {
    await addEvents(2);
    start({ present: presentAs });
    for (const [waitMs, tried] of [0, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000].map(
      (ms, index) => [ms, 2 * index + 2] as const,
    )) {
      scene.skewMs += waitMs;
      await until(() => tries >= tried, { what: `${tried} tries` });
      await untilTurns(2);
    }

    state = "broken";
    await addEvents(3);
    await until(() => pauses().length === 1, { what: "the first pause" });
    // The whole outbox is read again: its oldest events are those that failed by themselves.
    scene.skewMs += 46_000;
    for (const [index, waitMs] of [2_000, 4_000, 8_000].entries()) {
      await until(() => pauses().length === index + 2, { what: `pause ${index + 2}` });
      scene.skewMs += waitMs;
    }
    await until(() => pauses().length === 5, { what: "the last pause" });
    expect(pauses()).to.deep.equal([1_000, 2_000, 4_000, 8_000, 16_000]);
  });

  it("goes on with what is well behind many that are refused", async () => {
    await addEvents(12);
    start({
      batchSize: 70,
      present: async (resource, events) =>
        state === "well"
          ? present(resource, events)
          : {
              kind: "each",
              answers: events.map(({ recordId, snapshot }) =>
                recordId === "good" ? presented(snapshot) : refused,
              ),
            },
    });
    await scene.untilLine("relay.resting");
    await scene.work.addEvent({ recordId: "good" });
    const untilOut = (count: number): Promise<true> =>
      until(
        () => {
          scene.skewMs += 100;
          return published().length >= count;
        },
        { what: `${count} events` },
      );

    await untilOut(1);
    expect(published()).to.deep.equal(["good"]);
    state = "well";
    await untilOut(13);
  });
});
