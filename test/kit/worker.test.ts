import { expect } from "chai";
import { getEventListeners } from "node:events";
import { aborted, createAlarm, createPeriodicWorker, pause, endsWithin } from "../../src/kit/worker.ts";

const never = 60_000;

/**
 * Returns the number of listeners and of dependent signals (`AbortSignal.any`), which Node holds in
 * sets under symbols.
 */
function heldBy(signal: AbortSignal): number {
  const held = Object.getOwnPropertySymbols(signal).map(
    (symbol) => (signal as unknown as Record<symbol, unknown>)[symbol],
  );
  const others = held.filter((value) => value instanceof Set).map(({ size }) => size);
  return others.reduce((sum, size) => sum + size, getEventListeners(signal, "abort").length);
}

describe("pause", () => {
  it("waits its time", async () => {
    const startedAt = performance.now();

    await pause(20, new AbortController().signal);

    expect(performance.now() - startedAt).to.be.at.least(19);
  });

  it("ends when the signal aborts, and does not begin after that", async () => {
    const stopping = new AbortController();
    const paused = pause(never, stopping.signal);

    stopping.abort();

    await paused;
    await pause(never, stopping.signal);
  });
});

describe("createPeriodicWorker", () => {
  it("takes a turn after each interval, also after one that failed, until the signal aborts", async () => {
    const stopping = new AbortController();
    const errors: unknown[] = [];
    let turns = 0;
    const worker = createPeriodicWorker({
      name: "counter",
      intervalMs: 1,
      async turn() {
        turns += 1;
        if (turns === 3) stopping.abort();
        if (turns === 1) throw new Error("away");
      },
      onError: (error) => errors.push(error),
    });

    await worker.run(stopping.signal);

    expect(turns).to.equal(3);
    expect(errors.map(String)).to.deep.equal(["Error: away"]);
  });
});

describe("createAlarm", () => {
  it("cuts a wait short", async () => {
    const alarm = createAlarm();
    const waiting = alarm.wait(never, new AbortController().signal);

    alarm.wake();

    await waiting;
  });

  it("remembers a wake for the next wait only", async () => {
    const alarm = createAlarm();
    const { signal } = new AbortController();
    alarm.wake();
    alarm.wake();

    await alarm.wait(never, signal);

    const startedAt = performance.now();
    await alarm.wait(20, signal);
    expect(performance.now() - startedAt).to.be.at.least(19);
  });

  it("does not wake the next wait with the wake that ended this one", async () => {
    const alarm = createAlarm();
    const { signal } = new AbortController();
    const first = alarm.wait(never, signal);
    alarm.wake();
    await first;
    const startedAt = performance.now();

    await alarm.wait(20, signal);

    expect(performance.now() - startedAt).to.be.at.least(19);
  });

  it("leaves no listener on the signal, which lives as long as the process", async () => {
    const alarm = createAlarm();
    const { signal } = new AbortController();

    for (let turn = 0; turn < 10; turn++) {
      const waiting = alarm.wait(never, signal);
      alarm.wake();
      await waiting;
      await alarm.wait(0, signal);
    }

    expect(heldBy(signal)).to.equal(0);
  });
});

describe("aborted", () => {
  it("resolves when the signal aborts, and at once when it has", async () => {
    const stopping = new AbortController();
    const waiting = aborted(stopping.signal);

    stopping.abort();

    await waiting;
    await aborted(stopping.signal);
  });
});

describe("endsWithin", () => {
  it("returns whether the work ends in time", async () => {
    expect(await endsWithin(1_000, Promise.resolve())).to.equal(true);
    expect(await endsWithin(10, new Promise(() => undefined))).to.equal(false);
  });

  it("throws the error of the work in time, and ignores a later rejection", async () => {
    const late = new AbortController();
    const failing = new Promise((_, reject) =>
      late.signal.addEventListener("abort", () => reject(new Error("late"))),
    );
    expect(await endsWithin(10, failing)).to.equal(false);
    late.abort();

    const thrown = await endsWithin(1_000, Promise.reject(new Error("soon"))).catch(
      (error: unknown) => error,
    );

    expect(String(thrown)).to.equal("Error: soon");
  });
});
