import { expect } from "chai";
import { DatabaseError } from "pg";
import {
  createOutcomeWriter,
  type OutcomeWriter,
  type OutcomeWriterOptions,
} from "../../../src/deliveries/attempt/outcome-writer.ts";
import { createMemoryLog } from "../../support/http.ts";
import { until } from "../../support/wait.ts";

type Store = OutcomeWriterOptions["store"];

function writerOn(store: Partial<Store>, given: Partial<OutcomeWriterOptions> = {}): OutcomeWriter {
  const unused = { onQueued: () => undefined, announce: () => undefined };
  return createOutcomeWriter({ store: store as Store, log: createMemoryLog().log, ...unused, ...given });
}

describe("createOutcomeWriter", () => {
  const outcome = { id: "1", uuid: "u", status: "delivered", attemptsBefore: 0 } as const;

  it("repeats a write while the database is away, but not after the process was told to stop", async () => {
    const away = Object.assign(new Error("shutting down"), { code: "57P01" });
    let tries = 0;
    const writer = writerOn({
      async record() {
        tries += 1;
        return Promise.reject(away);
      },
    });

    const failure = writer
      .record({ id: "1", unwritten: 1, beganAtMs: 0 }, outcome)
      .catch((error: unknown) => error);
    await until(() => tries === 2, { what: "the second try" });
    writer.stop();

    expect(await failure).to.equal(away);
    expect(tries).to.be.at.most(3);
  });

  it("repeats no write once its flight may have ended", async () => {
    const away = Object.assign(new Error("shutting down"), { code: "57P01" });
    const now = performance.now.bind(performance);
    let tries = 0;
    const writer = writerOn({
      async record() {
        tries += 1;
        if (tries === 2) performance.now = () => now() + 14_000;
        return Promise.reject(tries < 3 ? away : new Error("tried again"));
      },
    });

    const failure = await writer
      .record({ id: "1", unwritten: 1, beganAtMs: 0 }, outcome)
      .catch((error: unknown) => error)
      .finally(() => (performance.now = now));

    expect([failure, tries]).to.deep.equal([away, 2]);
  });

  it("does not repeat a write that the database refuses", async () => {
    const refused = Object.assign(new DatabaseError("no uuid", 0, "error"), { code: "22P02" });
    let tries = 0;
    const writer = writerOn({
      async record() {
        tries += 1;
        return Promise.reject(tries === 1 ? refused : new Error("tried again"));
      },
    });

    const failure = await writer
      .record({ id: "1", unwritten: 1, beganAtMs: 0 }, outcome)
      .catch((error: unknown) => error);

    expect(failure).to.equal(refused);
  });

  it("ends a flight with its last outcome, and has the others checked that were written before", async () => {
    const ends: unknown[] = [];
    const writer = writerOn({
      async record({ outcomes, endedFlights, isWhole }) {
        ends.push([endedFlights, isWhole]);
        return new Map(outcomes.map(({ id, status }) => [id, status]));
      },
    });
    const [flight, whole] = [
      { id: "parts", unwritten: 2, beganAtMs: 0 },
      { id: "whole", unwritten: 1, beganAtMs: 0 },
    ];

    await writer.record(flight, outcome);
    await Promise.all([
      writer.record(flight, { ...outcome, id: "2" }),
      writer.record(whole, { ...outcome, id: "3" }),
    ]);
    await writer.record({ id: "last", unwritten: 1, beganAtMs: 0 }, { ...outcome, id: "4" });

    expect(ends).to.deep.equal([
      [[], true],
      [["parts", "whole"], false],
      [["last"], true],
    ]);
  });

  it("puts deliveries back, tells their waits, and announces those that only others can attempt", async () => {
    const told: unknown[] = [];
    const writer = writerOn(
      { putBack: async (given) => void told.push(given) },
      {
        onQueued: (delayMs) => void told.push(delayMs),
        announce: (deliveries, lane) => void told.push([deliveries, lane]),
      },
    );
    const flight = { id: "flight", unwritten: 2, beganAtMs: 0 };

    writer.putBack(flight, { id: "1", delayMs: 5 });
    writer.putBack(flight, { id: "2", delayMs: undefined, uuidForOthers: "u2" });
    await writer.drain();

    expect(told).to.deep.equal([
      {
        returns: [
          { id: "1", delayMs: 5, flightId: "flight" },
          { id: "2", delayMs: undefined, uuidForOthers: "u2", flightId: "flight" },
        ],
        endedFlights: ["flight"],
      },
      5,
      undefined,
      [[{ id: "2", uuid: "u2" }], "retry"],
    ]);
  });

  it("ends a flight whose last two deliveries were written by two statements at once", async () => {
    const ends: (readonly string[])[] = [];
    const writer = writerOn({
      record: async ({ outcomes, endedFlights }) => {
        ends.push(endedFlights);
        return new Map(outcomes.map(({ id, status }) => [id, status]));
      },
      async putBack({ endedFlights }) {
        ends.push(endedFlights);
        if (ends.length === 1) await until(() => ends.length === 2, { what: "the outcome" });
      },
    });
    const flight = { id: "flight", unwritten: 2, beganAtMs: 0 };

    writer.putBack(flight, { id: "1", delayMs: undefined });
    await writer.record(flight, outcome);
    await writer.drain();

    expect(ends).to.deep.equal([[], [], ["flight"]]);
  });

  for (const [what, unlocked, written] of [
    ["writes again what was only locked for a moment", ["1", "2"], ["delivered", "delivered"]],
    ["writes the others again while one is locked", ["2"], ["55P03", "delivered"]],
    ["writes nothing again while all are locked", [], ["55P03", "55P03"]],
  ] as const)
    it(what, async () => {
      const locked = Object.assign(new DatabaseError("lock timeout", 0, "error"), { code: "55P03" });
      const asked: (readonly string[])[] = [];
      const writer = writerOn({
        async record({ outcomes }) {
          asked.push(outcomes.map(({ id }) => id));
          if (asked.length === 1) throw locked;
          return new Map(outcomes.map(({ id, status }) => [id, status]));
        },
        findUnlocked: async () => new Set(unlocked),
      });
      const flight = { id: "1", unwritten: 2, beganAtMs: 0 };
      // Otherwise, it tries again later.
      writer.stop();

      const records = ["1", "2"].map((id) =>
        writer.record(flight, { ...outcome, id }).catch((error: { readonly code: string }) => error.code),
      );

      expect(await Promise.all(records)).to.deep.equal(written);
      expect(asked).to.deep.equal([["1", "2"], ...(unlocked.length === 0 ? [] : [unlocked])]);
    });
});
