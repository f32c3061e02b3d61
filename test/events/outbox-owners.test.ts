import { expect } from "chai";
import { createOutboxCursor, type OutboxCursor } from "../../src/events/outbox-cursor.ts";
import { createOutbox, type FoundEvent, type ReadLimits } from "../../src/events/outbox.ts";
import { coreOfSuite } from "../support/core-database.ts";
import { createWork, type Work } from "../support/work.ts";

const resources = ["notes", "papers"];

const recordsOf = (events: readonly FoundEvent[]): readonly string[] =>
  events.map(({ recordId }) => recordId);

function ownedBy(events: readonly FoundEvent[], ownerId: string): number {
  return events.filter((event) => event.ownerId === ownerId).length;
}

/** Returns the limits of a read with space for 20 events, with these in flight. */
function limitsOf(used: readonly (readonly [string, number])[]): ReadLimits {
  return {
    used: new Map(used.map(([holder, events]) => [holder, { events, bytes: 10 * events }])),
    free: { events: 20, bytes: 1_000_000 },
    catchUpBelow: { events: 4, bytes: 1_000_000 },
    full: [],
  };
}

// How a read divides its space among owners; outbox.test.ts has the rest.
describe("createOutbox, of several owners", () => {
  const core = coreOfSuite();
  let work: Work;
  let cursor: OutboxCursor;
  let inFlight: Set<string>;

  before(async () => {
    work = createWork(core.prisma);
  });
  beforeEach(async () => {
    await work.clear();
    cursor = createOutboxCursor(resources);
    inFlight = new Set();
  });

  const addOwned = (ownerId: string, count: number, resource = "notes", bytes = 1): Promise<unknown> =>
    core.sql(
      `INSERT INTO svc.events (resource, trigger, record_id, owner_id, snapshot)
       SELECT $2, 'on_create', $1 || ' ' || $2 || ' ' || n, $1, jsonb_build_object('text', repeat('a', $4)) FROM generate_series(1, $3::int) AS n ORDER BY n`,
      [ownerId, resource, count, bytes],
    );

  async function read({
    limit = 100,
    limits,
  }: { readonly limit?: number; readonly limits?: ReadLimits } = {}): Promise<readonly FoundEvent[]> {
    const { snapshot, events, scanned } = await createOutbox({ sql: core.sql }).read({
      scans: cursor.scans(resources),
      share: { name: "svc", others: [] },
      known: [...inFlight],
      limit,
      maxBytes: 1024 ** 2,
      ...(limits && { limits }),
    });
    cursor.advance(snapshot, scanned);
    for (const { id } of events) inFlight.add(id);
    return events;
  }

  async function readAll(): Promise<readonly string[]> {
    const records: string[] = [];
    for (let isMore = true; isMore;) {
      const events = await read();
      records.push(...recordsOf(events));
      isMore = events.length > 0 || cursor.hasLeftOver(resources);
    }
    return records;
  }

  it("takes the events of all owners in turn, and returns skipped ones later", async () => {
    await addOwned("1", 400);
    await addOwned("2", 2);
    await addOwned("1", 600, "papers");

    const first = await read({ limit: 6 });
    expect(first.map(({ ownerId }) => ownerId)).to.have.members(["1", "2", "1", "2", "1", "1"]);
    const second = await readAll();

    const all = [...recordsOf(first), ...second];
    expect(all).to.have.length(1_002);
    expect(new Set(all)).to.have.length(1_002);
  });

  it("finds the event of an owner behind two batches of another, of 1,000 each", async () => {
    for (let batch = 0; batch < 2; batch += 1) await addOwned("1", 1_000);
    await addOwned("2", 1);

    expect(ownedBy(await read({ limit: 10 }), "2")).to.equal(1);
  });

  it("gives an owner as much as it leaves free, including its events in flight, and the others theirs", async () => {
    await addOwned("1", 50);
    await addOwned("2", 50);

    const first = await read({ limits: limitsOf([["1", 15]]) });
    expect([ownedBy(first, "1"), ownedBy(first, "2")]).to.deep.equal([3, 10]);
    // Now in the remaining part: an owner with 4 in flight gets none of these.
    const second = await read({
      limits: limitsOf([
        ["1", 3],
        ["2", 4],
      ]),
    });
    expect([ownedBy(second, "1"), ownedBy(second, "2")]).to.deep.equal([9, 0]);
    const rest = await readAll();
    expect(new Set([...recordsOf(first), ...recordsOf(second), ...rest])).to.have.length(100);
  });

  it("passes only the owners whose events in flight may stop them", async () => {
    let passed: unknown;
    const outbox = createOutbox({
      sql: (text, values) => {
        passed = values?.[14];
        return core.sql(text, values);
      },
    });
    const few = { events: 5, bytes: 500 };
    await outbox.read({
      scans: cursor.scans(resources),
      share: { name: "svc", others: [] },
      known: [],
      limit: 100,
      maxBytes: 1024 ** 2,
      limits: {
        used: new Map([
          ["few", few],
          ["many", { ...few, events: 6 }],
          ["large", { ...few, bytes: 501 }],
        ]),
        free: { events: 900, bytes: 5_000 },
        catchUpBelow: { events: 50, bytes: 10_000 },
        full: [],
      },
    });

    expect(passed).to.deep.equal(["many", "large"]);
  });

  it("leaves the events of an owner that is full at a resource in the outbox", async () => {
    await addOwned("1", 3);
    await addOwned("2", 2);
    await addOwned("1", 1, "papers");

    const limits = limitsOf([]);
    const found = await read({
      limits: {
        ...limits,
        full: [
          ["notes", "1"],
          ["papers", "2"],
        ],
      },
    });
    expect(recordsOf(found).toSorted()).to.deep.equal(["1 papers 1", "2 notes 1", "2 notes 2"]);
    expect(recordsOf(await read({ limits }))).to.deep.equal(["1 notes 1", "1 notes 2", "1 notes 3"]);
  });

  it("counts the bytes of an owner in the same way, and takes its first event of any size", async () => {
    await addOwned("1", 3, "notes", 1_000);
    await addOwned("2", 3);
    const bytes = { used: new Map(), catchUpBelow: { events: 100, bytes: 100_000 }, full: [] };

    const one = await read({ limits: { ...bytes, free: { events: 100, bytes: 1_500 } } });
    expect([ownedBy(one, "1"), ownedBy(one, "2")]).to.deep.equal([1, 3]);
    const two = await read({ limits: { ...bytes, free: { events: 100, bytes: 3_000 } } });
    expect(ownedBy(two, "1")).to.equal(2);
  });

  it("takes new events before those left over, also when they are larger", async () => {
    for (let owner = 1; owner <= 10; owner += 1) await addOwned(String(owner), 1);
    await read({ limit: 5 });
    for (let owner = 11; owner <= 15; owner += 1) await addOwned(String(owner), 1, "notes", 500);

    const news = await read({ limit: 5 });
    const rest = await read({ limit: 5 });

    expect(news.map(({ isLeftOver }) => isLeftOver)).to.deep.equal([false, false, false, false, false]);
    expect(rest.map(({ isLeftOver }) => isLeftOver)).to.deep.equal([true, true, true, true, true]);
  });
});
