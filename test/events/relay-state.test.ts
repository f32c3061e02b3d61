import { expect } from "chai";
import type { FoundEvent, OutboxEvent } from "../../src/events/outbox.ts";
import {
  createRelayState,
  fitting,
  isNew,
  noteBytes,
  readWhole,
  restResource,
  retryLater,
  startOver,
  wakeResource,
  type RelayOptions,
  type RelayState,
} from "../../src/events/relay-state.ts";
import { firstNew } from "../support/first-new.ts";
import { createMemoryLog } from "../support/http.ts";
import { outboxEvent } from "../support/outbox-event.ts";

const eventOf = (id: string): OutboxEvent => outboxEvent(id, { ownerId: null });

describe("retryLater and restResource", () => {
  let state: RelayState;

  beforeEach(() => {
    const { log } = createMemoryLog();
    // The state uses no other option without a running relay.
    state = createRelayState({ resources: ["notes"], log } as unknown as RelayOptions);
  });

  it("leave an event that failed separately before its resource did to the next reads", () => {
    const event = eventOf("5");
    state.window.enter(event);
    expect(isNew(state, event)).to.equal(false);
    retryLater(state, "5");
    expect([state.window.has("5"), isNew(state, event)]).to.deep.equal([false, false]);
    state.window.enter(event);

    restResource(state, "notes", [event], {
      reason: "no scope",
      isPassing: false,
      isByEach: false,
      isProbe: false,
    });

    expect([isNew(state, event), state.resting.has("notes")]).to.deep.equal([true, true]);
    expect(state.cursor.leftOver("notes").map(({ range }) => range)).to.deep.equal([
      { from: { transaction: 9n, event: 4n }, to: { transaction: 9n, event: 5n } },
    ]);
  });

  it("let the resource rest for one failed event too many, and not for one that failed before", () => {
    for (let id = 1; id <= 5_000; id += 1) state.failed.add(String(id), { resource: "notes" });
    for (const id of ["1", "10001"]) state.window.enter(eventOf(id));

    retryLater(state, "1");
    expect([state.failed.has("1"), state.resting.has("notes")]).to.deep.equal([true, false]);
    retryLater(state, "10001");

    expect(isNew(state, eventOf("10001"))).to.equal(true);
    expect([state.resting.has("notes"), state.cursor.hasLeftOver(["notes"])]).to.deep.equal([true, true]);
  });

  it("let a resource that rests already not rest longer for one more failed event", () => {
    for (let id = 1; id <= 5_000; id += 1) state.failed.add(String(id), { resource: "notes" });
    for (const id of ["10001", "10002"]) {
      state.window.enter(eventOf(id));
      retryLater(state, id);
    }

    // The pause doubles with each rest: 1 s, then 2 s.
    expect(state.resting.rest("notes", { isPassing: false })).to.equal(2_000);
  });

  it("ignore one more failed event that is not in flight", () => {
    for (let id = 1; id <= 5_000; id += 1) state.failed.add(String(id), { resource: "notes" });

    retryLater(state, "10001", { resource: "notes" });

    expect([state.failed.has("10001"), state.resting.has("notes")]).to.deep.equal([false, false]);
  });

  it("let no resource rest for the failed events of another", () => {
    for (let id = 1; id <= 10_000; id += 1) {
      state.window.enter(eventOf(String(id)));
      retryLater(state, String(id));
    }
    state.window.enter({ ...eventOf("10001"), resource: "papers" });

    retryLater(state, "10001");

    expect([state.failed.has("10001"), state.resting.has("papers")]).to.deep.equal([true, false]);
  });

  it("pause twice as long each time, up to half a minute, and a second while the database is down", () => {
    const { resting } = state;
    const rest = (isPassing: boolean): number => resting.rest("notes", { isPassing });

    expect(Array.from({ length: 7 }, () => rest(false))).to.deep.equal([
      1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000,
    ]);
    expect([rest(true), rest(true), rest(false), rest(false)]).to.deep.equal([1_000, 1_000, 1_000, 2_000]);
  });

  it("pause longer the more of them do, up to five minutes", () => {
    const { resting } = state;
    for (let one = 1; one <= 20; one += 1) resting.rest(String(one), { isPassing: false });

    const pauses = Array.from({ length: 10 }, () => resting.rest("notes", { isPassing: false }));

    expect(pauses.slice(5)).to.deep.equal([32_000, 64_000, 128_000, 256_000, 300_000]);
  });
});

describe("restResource and wakeResource", () => {
  let state: RelayState;
  let lines: readonly Record<string, unknown>[];
  let waits: (readonly [id: string, ms: number])[];

  beforeEach(() => {
    const memory = createMemoryLog();
    lines = memory.lines;
    state = createRelayState({ resources: ["notes"], log: memory.log } as unknown as RelayOptions);
    waits = [];
    const failed = { ...state.failed };
    state.failed.add = (id, options) => {
      const ms = failed.add(id, options);
      waits.push([id, ms]);
      return ms;
    };
  });

  const rest = (ids: readonly string[], how: { readonly isByEach?: true; readonly isProbe?: true }): void => {
    const events = ids.map(eventOf);
    for (const event of events) state.window.enter(event);
    const kind = { isPassing: false, isByEach: false, isProbe: false, ...how };
    restResource(state, "notes", events, { reason: "no column", ...kind });
  };

  it("retry the events that failed together once, and those that failed alone as if they failed twice", () => {
    rest(["1", "2"], {});
    rest(["3"], { isProbe: true });
    expect(waits).to.deep.equal([]);

    wakeResource(state, "notes");

    expect(waits).to.deep.equal([
      ["1", 1_000],
      ["2", 1_000],
      ["3", 1_000],
      ["3", 2_000],
    ]);
    expect(state.resting.has("notes")).to.equal(false);
  });

  it("read the events that failed together again, and leave those that failed alone where they are", () => {
    rest(["1"], {});
    expect([isNew(state, eventOf("1")), state.cursor.hasLeftOver(["notes"])]).to.deep.equal([true, true]);

    state.cursor = createRelayState({ resources: ["notes"] } as unknown as RelayOptions).cursor;
    rest(["2"], { isProbe: true });
    expect([isNew(state, eventOf("2")), state.cursor.hasLeftOver(["notes"])]).to.deep.equal([true, false]);
  });

  it("retry events that were refused one by one at once, and only once", () => {
    rest(["1", "2"], { isByEach: true });
    wakeResource(state, "notes");

    expect(waits).to.deep.equal([
      ["1", 1_000],
      ["2", 1_000],
    ]);
    expect(state.cursor.hasLeftOver(["notes"])).to.equal(false);
  });

  it("leave events alone that are in flight again, and a resource that does not rest", () => {
    rest(["1", "2"], {});
    state.window.enter(eventOf("1"));

    wakeResource(state, "notes");
    wakeResource(state, "notes");

    expect(waits).to.deep.equal([["2", 1_000]]);
    expect(state.window.has("1")).to.equal(true);
    expect(lines.map(({ event }) => event)).to.deep.equal(["relay.resting", "relay.recovered"]);
  });

  it("note at most 10,000 events that failed together", () => {
    const ids = Array.from({ length: 9_999 }, (_, place) => String(place + 1));

    rest(ids, {});
    rest(["10000"], {});
    rest(["10001"], {});

    expect(state.resting.tried("notes").size).to.equal(10_000);
  });
});

const largeOf = (ownerId: string, resource: string): FoundEvent => ({
  ...eventOf(`${ownerId} ${resource}`),
  ownerId,
  resource,
  bytes: 2_000_000,
});

describe("fitting", () => {
  it("gives owners of large messages turns, each with as much as a read, and small ones pass them", () => {
    const state = createRelayState({ resources: ["notes"] } as unknown as RelayOptions);
    const [small, ...large] = ["4", "1", "2", "3"].map((ownerId) => {
      return { ...eventOf(ownerId), ownerId, bytes: ownerId === "4" ? 100 : 600_000 };
    });
    if (small === undefined) throw new Error("There is no small one.");
    for (const event of [...large, small]) noteBytes(state, event, event.bytes);
    const events = [...large, ...large, small, small];
    const ownersOf = (): readonly (string | null)[] => {
      const taken = fitting(state, events);
      for (const event of taken) noteBytes(state, event, event.bytes);
      return taken.map(({ ownerId }) => ownerId);
    };

    expect(Array.from({ length: 4 }, ownersOf)).to.deep.equal([
      ["1", "1", "4", "4"],
      ["2", "2", "4", "4"],
      ["3", "3", "4", "4"],
      ["1", "1", "4", "4"],
    ]);
  });

  it("gives an owner one turn, whose resources take turns, however many there are", () => {
    const state = createRelayState({ resources: ["notes"] } as unknown as RelayOptions);
    const events = [largeOf("1", "a"), largeOf("1", "b"), largeOf("1", "c"), largeOf("2", "a")];
    for (const event of events) noteBytes(state, event, event.bytes);
    const idsOf = (): readonly string[] => {
      const taken = fitting(state, events);
      for (const event of taken) noteBytes(state, event, event.bytes);
      return taken.map(({ id }) => id);
    };

    expect(Array.from({ length: 6 }, idsOf).flat()).to.deep.equal(["1 a", "2 a", "1 b", "2 a", "1 c", "2 a"]);
  });

  it("goes by the bytes of the record until a message is known, and puts new owners first", () => {
    const state = createRelayState({ resources: ["notes"] } as unknown as RelayOptions);
    const events = ["1", "2", "3"].map((ownerId) => ({ ...eventOf(ownerId), ownerId, bytes: 600_000 }));
    noteBytes(state, { ...eventOf("1"), ownerId: "1" }, 700_000);

    expect(fitting(state, events).map(({ ownerId }) => ownerId)).to.deep.equal(["2", "3"]);
  });

  it("goes by the messages before, however small the record is", () => {
    const state = createRelayState({ resources: ["notes"] } as unknown as RelayOptions);
    const events = ["1", "2", "3"].map((ownerId) => ({ ...eventOf(ownerId), ownerId }));
    for (const event of events) noteBytes(state, event, 600_000);

    expect(fitting(state, events).map(({ ownerId }) => ownerId)).to.deep.equal(["1", "2"]);
  });

  it("lets events without a record pass, and all of a read that fit", () => {
    const state = createRelayState({ resources: ["notes"] } as unknown as RelayOptions);
    const refused = { ...largeOf("4", "notes"), snapshot: null };
    const events = ["1", "2"].map((ownerId) => ({ ...eventOf(ownerId), ownerId, bytes: 600_000 }));

    expect(fitting(state, [...events, refused])).to.deep.equal([...events, refused]);
  });
});

describe("noteBytes", () => {
  it("estimates the next message as the mean of the last one and of the estimate before it", () => {
    const state = createRelayState({ resources: ["notes"] } as unknown as RelayOptions);

    for (const bytes of [1_000, 2_000, 500]) noteBytes(state, { ...eventOf("1"), ownerId: "7" }, bytes);

    expect([...state.likelyBytes]).to.deep.equal([["notes 7", 1_000]]);
  });
});

describe("startOver", () => {
  it("forgets what was visible, and makes the next read find only the visible events", () => {
    const state = createRelayState({ resources: ["notes"] } as unknown as RelayOptions);
    expect(state.isBlindDue).to.equal(true);
    state.isBlindDue = false;
    state.cursor.advance({ xmax: 100n, running: new Set() }, []);
    state.nextWholeMs = 0;

    startOver(state);

    expect([firstNew(state.cursor), state.isBlindDue]).to.deep.equal([0n, true]);
    expect(state.nextWholeMs).to.be.greaterThan(performance.now());
  });
});

describe("readWhole", () => {
  it("makes the next read take everything, and no other until five minutes later", () => {
    const state = createRelayState({ resources: ["notes"] } as unknown as RelayOptions);
    const scanned = state.cursor.scans(["notes"]).map((scan) => ({ scan, last: undefined, hasMore: false }));
    state.cursor.advance({ xmax: 100n, running: new Set() }, scanned);
    expect(state.cursor.hasLeftOver(["notes"])).to.equal(false);
    expect(state.nextWholeMs).to.be.greaterThan(performance.now());
    state.nextWholeMs = 0;
    const beganAtMs = performance.now();

    readWhole(state);

    expect(state.cursor.leftOver("notes")[0]?.range.from.transaction).to.equal(-1n);
    expect(firstNew(state.cursor)).to.equal(100n);
    expect(state.nextWholeMs).to.be.within(beganAtMs + 300_000, performance.now() + 300_000);
  });
});
