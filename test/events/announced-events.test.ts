import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import type { NoticeListener } from "../../src/db/notices.ts";
import { publishAnnounced } from "../../src/events/announced-events.ts";
import type { OutboxEvent } from "../../src/events/outbox.ts";
import {
  createRelayState,
  retryLater,
  type RelayOptions,
  type RelayState,
} from "../../src/events/relay-state.ts";
import { outboxEvent } from "../support/outbox-event.ts";
import { until } from "../support/wait.ts";

const mostBytes = 4 * 1024 ** 2;
const eventOf = (id: string, resource = "notes"): OutboxEvent => outboxEvent(id, { resource });

describe("publishAnnounced", () => {
  let state: RelayState;
  let isConnected = true;
  let wakes = 0;
  let listener: NoticeListener | undefined;
  /** The ids of each group that is presented. Nothing answers, so each group stays under way. */
  let presented: (readonly string[])[];
  let stop: () => void;

  beforeEach(() => {
    [isConnected, wakes, presented] = [true, 0, []];
    // The state uses no other option before events are presented.
    state = createRelayState({
      resources: ["notes", "papers", "teams"],
      costly: ["teams"],
      broker: { isConnected: () => isConnected },
      notices: { listen: (given: NoticeListener) => ((listener = given), () => (listener = undefined)) },
      present(_resource: string, events: readonly OutboxEvent[]) {
        presented.push(events.map(({ id }) => id));
        return new Promise(() => undefined);
      },
    } as unknown as RelayOptions);
    state.alarm.wake = () => (wakes += 1);
    stop = publishAnnounced(state);
  });

  const announce = async (...events: readonly (OutboxEvent | undefined)[]): Promise<void> => {
    listener?.(events.map((event) => (event === undefined ? "" : JSON.stringify(event))));
    await nextTurn();
  };

  it("presents the events of each resource together, and leaves the relay asleep", async () => {
    await announce(eventOf("1"), eventOf("2", "papers"), eventOf("3"));

    expect(presented).to.deep.equal([["1", "3"], ["2"]]);
    expect(wakes).to.equal(0);
  });

  it("wakes the relay for what it does not know", async () => {
    await announce(eventOf("1"), undefined);

    expect(presented).to.deep.equal([["1"]]);
    expect(wakes).to.equal(1);
  });

  it("does nothing after its end", async () => {
    stop();
    await announce(eventOf("1"));

    expect([presented, wakes]).to.deep.equal([[], 0]);
  });

  it("gathers events when the pace has a wait, counts them for it, and does not outlast its end", async () => {
    const counts: number[] = [];
    Object.assign(state.pace, { waitMs: () => 300, note: (events: number) => counts.push(events) });
    await announce(eventOf("1"));
    await announce(eventOf("2"));
    expect(presented).to.deep.equal([]);

    await until(() => presented.length > 0, { what: "the gathered events" });
    expect(presented).to.deep.equal([["1", "2"]]);
    expect(counts).to.deep.equal([2]);

    state.busy.clear();
    await announce(eventOf("3"));
    stop();
    await sleep(400);
    expect(presented).to.have.length(1);
  });

  const other = (bytes: number): OutboxEvent => ({ ...eventOf("8", "papers"), bytes });
  const obstacles: Readonly<Record<string, () => unknown>> = {
    "the broker is away": () => (isConnected = false),
    "its resource has events that are being presented": () => state.busy.add("notes"),
    "its resource rests": () => state.resting.rest("notes", { isPassing: false }),
    "its resource is not in the mapping files": () => (event = eventOf("1", "unknown")),
    "its resource is costly": () => (event = eventOf("1", "teams")),
    "its owner's events are slow": () => (state.slow.has = () => true),
    "it is in flight": () => state.window.enter(event),
    "it has failed": () => retryLater(state, "1", { resource: "notes" }),
    "its owner has as many bytes in flight as are left free": () => state.window.enter(other(mostBytes / 2)),
    "its owner has as many events in flight as are left free": () => {
      for (let id = 100; id < 600; id += 1) state.window.enter(eventOf(String(id), "papers"));
    },
  };
  let event = eventOf("1");
  for (const [name, put] of Object.entries(obstacles))
    it(`leaves an event to the reads when ${name}`, async () => {
      event = eventOf("1");
      put();

      await announce(event);

      expect(presented).to.deep.equal([]);
      expect(wakes).to.equal(1);
    });

  it("presents an event beside almost as much of its owner as is left free", async () => {
    state.window.enter(other(mostBytes / 2 - 1));
    for (let id = 100; id < 598; id += 1) state.window.enter({ ...eventOf(String(id), "papers"), bytes: 0 });

    await announce(eventOf("1"));

    expect(presented).to.deep.equal([["1"]]);
  });
});
