import { expect } from "chai";
import type { OutgoingMessage, PublishOutcome } from "../../src/broker/broker.ts";
import { createSeal } from "../../src/broker/seal.ts";
import { resultTooLargeCode } from "../../src/db/result-limit.ts";
import type { PresentedAll } from "../../src/events/event-presenter.ts";
import type { FoundEvent, OutboxEvent } from "../../src/events/outbox.ts";
import { startPublishing } from "../../src/events/relay-publish.ts";
import { createRelayState, fitting, isNew, type RelayOptions } from "../../src/events/relay-state.ts";
import { createMetrics } from "../../src/telemetry/metrics.ts";
import { createMemoryLog } from "../support/http.ts";
import { outboxEvent } from "../support/outbox-event.ts";

const events = ["1", "2", "3"].map((id) => outboxEvent(id));

const each = (found: readonly OutboxEvent[]): PresentedAll => ({
  kind: "each",
  answers: found.map(({ id }) => ({ kind: "presented", data: id })),
});
const none = (reason: string): PresentedAll => ({ kind: "none", reason, isPassing: true });

/** A relay that reads nothing by itself, with a broker that answers all in one way. */
function openRelay(
  present: (found: readonly OutboxEvent[]) => Promise<PresentedAll>,
  outcome: PublishOutcome = { kind: "confirmed" },
) {
  const published: (string | undefined)[] = [];
  const { log, lines } = createMemoryLog();
  const broker = {
    async publish(messages: readonly OutgoingMessage[]) {
      published.push(...messages.map(({ messageId }) => messageId));
      return messages.map(() => outcome);
    },
  };
  const state = createRelayState({
    resources: ["notes"],
    broker,
    // Asked on a slow machine only.
    outbox: { waiting: async (ids: readonly string[]) => new Set(ids) },
    log,
    seal: createSeal(Buffer.alloc(32, 1)),
    metrics: createMetrics().events,
    present: (_resource: string, found: readonly OutboxEvent[]) => present(found),
  } as unknown as RelayOptions);
  const publish = async (
    found: readonly FoundEvent[],
    given: Parameters<typeof startPublishing>[3] = {},
  ): Promise<void> => {
    await startPublishing(state, "notes", found, given);
    await Promise.all(state.underWay);
  };
  return { state, published, lines, publish };
}

describe("startPublishing", () => {
  it("publishes those of a probe that can be presented, although the statement of another fails", async () => {
    const { state, published, publish } = openRelay(async (found) =>
      found[0]?.id === "2" ? none("a bug") : each(found),
    );
    state.resting.rest("notes", { isPassing: false });

    await publish(events, { isProbe: true });

    expect(published).to.deep.equal(["1", "3"]);
    expect(state.resting.has("notes")).to.equal(false);
    expect(events.map(({ id }) => [state.window.has(id), state.failed.has(id)])).to.deep.equal([
      [true, false],
      [false, true],
      [true, false],
    ]);
    // The failure counts twice: the third makes it wait for four seconds.
    expect(state.failed.add("2")).to.equal(4_000);
  });

  it("rests for the reason of a probe of which none can be presented", async () => {
    const { state, published, lines, publish } = openRelay(async (found) =>
      found[0]?.id === "2" ? none("away") : Promise.reject(new Error("too large")),
    );

    await publish(events, { isProbe: true });

    expect([published, state.resting.has("notes")]).to.deep.equal([[], true]);
    expect(lines.at(-1)).to.include({ event: "relay.resting", reason: "away", events: 3 });
    expect(events.some(({ id }) => state.window.has(id) || state.failed.has(id))).to.equal(false);
  });

  it("rests for a probe of which each event is refused, and tries these apart", async () => {
    const { state, lines, publish } = openRelay(() => Promise.reject(new Error("too large")));

    await publish(events, { isProbe: true });

    expect(lines.at(-1)).to.include({ event: "relay.resting", reason: "too large", events: 3 });
    expect(events.every(({ id }) => state.failed.has(id))).to.equal(true);
  });

  it("tries events that the broker did not confirm again as soon as another one arrives", async () => {
    const refusal: PublishOutcome = { kind: "unconfirmed", reason: "nacked" };
    const { state, lines, publish } = openRelay(async (found) => each(found), refusal);

    await publish(events);

    expect(lines.at(-1)).to.include({ event: "relay.turn", read: 3, published: 0 });
    expect(events.some(({ id }) => state.window.has(id))).to.equal(false);
    expect(state.failed.take(10)).to.deep.equal([]);
    state.failed.arrived("1");
    expect(state.failed.take(10)).to.deep.equal(["2", "3"]);
  });

  it("has an event with too large a message wait for long", async () => {
    const { state, published, publish } = openRelay(async (found) => ({
      kind: "each",
      answers: found.map(({ id }) => ({ kind: "presented", data: id === "1" ? "x".repeat(17_000_000) : id })),
    }));

    await publish(events);

    expect(published).to.deep.equal(["2", "3"]);
    expect(events.map(({ id }) => [state.window.has(id), state.failed.has(id)])).to.deep.equal([
      [false, true],
      [true, false],
      [true, false],
    ]);
    expect(state.failed.add("1")).to.be.at.least(30_000);
  });

  it("presents one of a group that is too large together, and expects large messages of its owner", async () => {
    const asked: number[] = [];
    const { state, published, publish } = openRelay(async (found) => {
      asked.push(found.length);
      if (found.length === 1) return each(found);
      throw Object.assign(new Error("too large"), { code: resultTooLargeCode });
    });

    await publish(events);

    expect([asked, published]).to.deep.equal([[3, 1], ["1"]]);
    expect(events.map((event) => isNew(state, event))).to.deep.equal([false, true, true]);
    expect(state.cursor.leftOver("notes").map(({ range }) => range.to.event)).to.deep.equal([2n, 3n]);
    expect(fitting(state, [outboxEvent("4"), outboxEvent("5")])).to.have.length(1);
  });

  it("leaves to later retries the others of failed events that are too large together", async () => {
    const { state, published, publish } = openRelay(async (found) => {
      if (found.length === 1) return each(found);
      throw Object.assign(new Error("too large"), { code: resultTooLargeCode });
    });
    for (const { id } of events) state.failed.add(id, { resource: "notes" });

    await publish(events, { isRetry: true });

    expect(published).to.deep.equal(["1"]);
    expect(events.map(({ id }) => state.window.has(id))).to.deep.equal([true, false, false]);
    expect(state.failed.take(10)).to.deep.equal(["2", "3"]);
  });

  for (const isRetry of [false, true])
    it(`${isRetry ? "delays no new events" : "has later events wait"} while it presents ${isRetry ? "a retry" : "others"}`, async () => {
      let wasBusy: boolean | undefined;
      const { state, publish } = openRelay(async (found) => {
        // The relay notes the resource after this call.
        await Promise.resolve();
        wasBusy = state.busy.has("notes");
        return each(found);
      });

      await publish(events, { isRetry });

      expect([wasBusy, state.busy.has("notes")]).to.deep.equal([!isRetry, false]);
      state.busy.add("notes");
      await publish(events, { isRetry });
      expect(state.busy.has("notes")).to.equal(isRetry);
    });

  it("tries events again, with a log line, after a present that rejects", async () => {
    const { state, published, lines, publish } = openRelay(() => Promise.reject(new Error("a bug")));

    await publish(events);

    expect([published, state.busy.size]).to.deep.equal([[], 0]);
    expect(lines).to.have.length(1);
    expect(lines[0]).to.include({ level: 50, resource: "notes" });
    expect(events.every(({ id }) => state.failed.has(id) && !state.window.has(id))).to.equal(true);
  });

  it("refuses an event that was not read, for long, and publishes the others", async () => {
    const { state, published, lines, publish } = openRelay(async (found) => each(found));
    const unread: FoundEvent = { ...outboxEvent("4"), snapshot: null, bytes: 20_000_000 };

    await publish([unread, ...events]);

    expect(published).to.deep.equal(["1", "2", "3"]);
    expect(lines[0]).to.include({ event: "relay.too_large", eventUuid: "4", bytes: 20_000_000 });
    expect([state.window.has("4"), state.failed.has("4")]).to.deep.equal([false, true]);
  });

  for (const count of [9, 10])
    it(`${count < 10 ? "does not rest" : "rests"} when ${count} of a read are refused, and none is presented`, async () => {
      const many = Array.from({ length: count }, (_, index) => outboxEvent(String(index + 1)));
      const { state, publish } = openRelay(async (found) => ({
        kind: "each",
        answers: found.map(() => ({ kind: "refused", reason: "no scope" })),
      }));

      await publish(many);

      expect(state.resting.has("notes")).to.equal(count === 10);
      expect(many.every(({ id }) => state.failed.has(id))).to.equal(true);
    });
});
