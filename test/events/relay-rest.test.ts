import { expect } from "chai";
import { numbers, present, presented, useRelayScene } from "../support/relay-scene.ts";
import { until } from "../support/wait.ts";

// Resources that pause after single events of them have failed; relay.test.ts has the rest.
describe("createRelay, of a resource that fails as a whole after some of its events have failed", () => {
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
  const untilOut = (count: number): Promise<true> =>
    until(
      () => {
        scene.skewMs += 100;
        return published().length >= count;
      },
      { what: `${count} events` },
    );
  /** Adds events together; their owners are the first letters of their records. */
  const addOfOwners = (names: readonly string[]): Promise<unknown> =>
    scene.core.sql(
      `INSERT INTO svc.events (resource, trigger, record_id, owner_id, snapshot)
       SELECT 'notes', 'on_update', name, left(name, 1), '{}' FROM unnest($1::text[]) AS name`,
      [names],
    );
  beforeEach(() => {
    // A whole number, so that sums of times are exact.
    scene.stoppedAtMs = Math.round(performance.now());
    [state, tries] = ["refusing", 0];
  });

  it("does not rest for these, which wait separately, and publishes them when it succeeds again", async () => {
    await addEvents(40);
    start({ present: presentAs });
    await until(() => tries === 40, { what: "the first tries" });

    state = "broken";
    scene.skewMs += 1_000;
    await untilTurns(20);
    expect(pauses()).to.deep.equal([]);

    state = "well";
    scene.skewMs += 2_000;
    await untilPublished(40);
    expect(published().toSorted()).to.deep.equal(numbers(40).toSorted());
  });

  it("rests ever longer, although the oldest are known to have failed separately", async () => {
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
    // The whole outbox is read again: its oldest events are those that failed alone.
    scene.skewMs += 46_000;
    for (const [index, waitMs] of [2_000, 4_000, 8_000].entries()) {
      await until(() => pauses().length === index + 2, { what: `pause ${index + 2}` });
      scene.skewMs += waitMs;
    }
    await until(() => pauses().length === 5, { what: "the last pause" });
    expect(pauses()).to.deep.equal([1_000, 2_000, 4_000, 8_000, 16_000]);
  });

  it("continues with presentable events after many refused ones", async () => {
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
    await untilOut(1);
    expect(published()).to.deep.equal(["good"]);
    state = "well";
    await untilOut(13);
  });

  it("ends on stop the retry of several resources that it has begun", async () => {
    let go: (() => void) | undefined;
    await addEvents(1);
    await addEvents(1, "papers");
    start({
      batchSize: 70,
      async present(resource, events) {
        tries += 1;
        if (tries <= 2) return { kind: "each", answers: events.map(() => refused) };
        if (tries === 3) await new Promise<void>((resolve) => (go = resolve));
        // Longer than a relay takes that does not wait for it.
        else await scene.core.sql("SELECT pg_sleep(0.2)");
        return present(resource, events);
      },
    });
    await until(() => scene.lines.filter(({ event }) => event === "relay.refused").length === 2, {
      what: "the first tries",
    });
    scene.skewMs += 1_000;
    await until(() => go, { what: "the retry" });

    const stopped = scene.stop();
    go?.();
    await stopped;

    expect(published()).to.deep.equal(["1", "1"]);
  });

  describe("beside events that take longer than a statement may", () => {
    const slowly = { kind: "none", reason: "statement timeout", isPassing: true, isTooSlow: true } as const;
    let slow: Set<string>;
    let alone: string[];
    const presentSlowly: typeof present = async (resource, events) => {
      if (!events.some(({ recordId }) => slow.has(recordId))) return present(resource, events);
      alone.push(...events.map(({ recordId }) => recordId));
      return slowly;
    };
    beforeEach(() => {
      alone = [];
    });

    for (const [which, ids] of [
      ["the oldest", ["1"]],
      ["the two at each end", ["1", "2", "9", "10"]],
    ] as const)
      it(`continues with presentable ones, where these are ${which}`, async () => {
        slow = new Set(ids);
        await addEvents(10);
        start({ batchSize: 70, present: presentSlowly });

        await untilOut(10 - ids.length);
        expect(published().filter((id) => slow.has(id))).to.deep.equal([]);
        slow.clear();
        await untilOut(10);
        expect(published().toSorted()).to.deep.equal(numbers(10).toSorted());
      });

    it("does not rest for one among many, and tries those of its owner in ever smaller groups", async () => {
      slow = new Set(["20"]);
      await addEvents(40, "notes", "7");
      start({
        batchSize: 70,
        async present(resource, events) {
          const answer = await presentSlowly(resource, events);
          if (answer.kind === "none") scene.skewMs += 2_000;
          return answer;
        },
      });
      await until(() => alone.length === 40, { what: "all of them together" });

      // The first 17 succeed, the 17 behind them fail, and the last six follow at once.
      scene.skewMs += 1_000;
      await untilPublished(17 + 6);
      slow.clear();
      await untilOut(40);
      expect(pauses()).to.deep.equal([]);
    });

    it("rests when new events fail a second time, and none was presented between", async () => {
      slow = new Set(["1", "2"]);
      await scene.work.addEvent({ recordId: "1" });
      start({ batchSize: 70, present: presentSlowly });
      await until(() => alone.length === 1, { what: "the first try" });
      expect(pauses()).to.deep.equal([]);

      await scene.work.addEvent({ recordId: "2" });
      await scene.untilLine("relay.resting");
      slow.clear();
      await untilOut(2);
    });

    it("tries those of others without them, and later ones of their owner apart", async () => {
      const ownersOfGroups: string[] = [];
      let isTried = false;
      await addOfOwners(["a1", "b1"]);
      start({
        batchSize: 70,
        async present(resource, events) {
          ownersOfGroups.push([...new Set(events.map(({ ownerId }) => ownerId))].join());
          if (!events.some(({ ownerId }) => ownerId === "b")) return present(resource, events);
          if (ownersOfGroups.length > 1 && !isTried) {
            scene.skewMs += 1_000;
            await addOfOwners(["a2"]);
            await untilPublished(2);
            isTried = true;
          }
          return slowly;
        },
      });
      await untilOut(2);
      await until(() => scene.lines.filter(({ event }) => event === "relay.refused").length === 2, {
        what: "the end of a try of b1 alone, during which a2 was presented",
      });

      await addOfOwners(["a3", "b3"]);
      await untilPublished(3);

      expect(published()).to.deep.equal(["a1", "a2", "a3"]);
      expect(ownersOfGroups.filter((owners) => owners.includes(","))).to.have.length(1);
      expect(pauses()).to.deep.equal([]);
    });

    it("retries those of others, however often an owner changes a record of this kind", async () => {
      let isRefusing = true;
      let changes = 0;
      await scene.fanOut();
      await addOfOwners(["a", "b"]);
      start({
        batchSize: 70,
        async present(resource, events) {
          const owners = new Set(events.map(({ ownerId }) => ownerId));
          if (!owners.has("b")) {
            const isRefused = isRefusing && events.some(({ recordId }) => recordId === "a");
            if (!isRefused) return present(resource, events);
            return { kind: "each", answers: events.map(() => refused) };
          }
          if (owners.has("a")) return slowly;
          changes += 1;
          const other = `a${changes}`;
          scene.skewMs += 1_000;
          await addOfOwners(isRefusing ? [other] : [other, `b${changes}`]);
          await until(() => [other, "a"].some((one) => published().includes(one)), { what: other });
          return slowly;
        },
      });
      const untilRefusals = (count: number): Promise<true> =>
        until(() => scene.lines.filter(({ event }) => event === "relay.refused").length === count, {
          what: `${count} tries`,
        });
      await untilRefusals(1);
      scene.skewMs += 1_000;
      await untilRefusals(3);

      isRefusing = false;
      await addOfOwners(["b0"]);
      await until(
        () => {
          scene.skewMs += 100;
          return published().includes("a");
        },
        { what: "the event of another owner" },
      );
    });

    it("continues with new events after any number of earlier ones", async () => {
      slow = new Set(numbers(60));
      await addEvents(60);
      start({
        batchSize: 70,
        async present(resource, events) {
          const answer = await presentSlowly(resource, events);
          if (answer.kind === "none") scene.skewMs += 2_000;
          return answer;
        },
      });
      await until(
        () => {
          scene.skewMs += 100;
          return alone.length > 60;
        },
        { what: "some tries" },
      );
      alone = [];

      await scene.work.addEvent({ recordId: "new" });
      await untilOut(1);
      expect(alone).to.have.length.below(20);
    });

    it("continues with new events while one of these is retried", async () => {
      slow = new Set(["1"]);
      await addEvents(4);
      let isTrying = false;
      start({
        batchSize: 70,
        async present(resource, events) {
          const answer = await presentSlowly(resource, events);
          if (answer.kind === "each" || published().length < 3) return answer;
          isTrying = true;
          await until(() => published().includes("new"), { what: "what is new" });
          return answer;
        },
      });
      await untilOut(3);
      await until(
        () => {
          scene.skewMs += 100;
          return isTrying;
        },
        { what: "another try" },
      );

      await scene.work.addEvent({ recordId: "new" });
      await untilPublished(4);
    });

    it("rests no more once these have failed alone, and retries them ever more rarely", async () => {
      slow = new Set(["1"]);
      await addEvents(4);
      start({ batchSize: 70, present: presentSlowly });
      await untilOut(3);
      const rests = pauses().length;
      alone = [];

      for (let second = 0; second < 120; second += 1) {
        scene.skewMs += 1_000;
        await untilTurns(2);
      }

      expect(pauses()).to.have.length(rests);
      expect(alone).to.have.length.within(5, 8);
    });

    it("retries one of these at a time, and rests four times as long as it took", async () => {
      slow = new Set(["1", "2", "3"]);
      await addEvents(6);
      let running = 0;
      let most = 0;
      let triedMs = 0;
      start({
        batchSize: 70,
        async present(resource, events) {
          if (published().length < 3 || !events.some(({ recordId }) => slow.has(recordId)))
            return presentSlowly(resource, events);
          running += 1;
          most = Math.max(most, running);
          scene.skewMs += 2_000;
          triedMs += 2_000;
          await untilTurns(3);
          running -= 1;
          return slowly;
        },
      });
      await untilOut(3);
      const startedAtMs = scene.skewMs;
      for (let second = 0; second < 200; second += 1) {
        scene.skewMs += 1_000;
        await untilTurns(2);
      }

      expect(most).to.equal(1);
      expect(triedMs).to.be.within(2_000, (scene.skewMs - startedAtMs) / 4);
    });
  });
});
