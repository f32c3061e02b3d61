import { expect } from "chai";
import { createOutboxCursor } from "../../src/events/outbox-cursor.ts";
import { createOutbox, type FoundEvent } from "../../src/events/outbox.ts";
import type { OtherRelay, Share } from "../../src/events/relay-shares.ts";
import { coreOfSuite } from "../support/core-database.ts";

const resources = ["notes", "papers"];
const relay = (name: string, known?: readonly string[]): OtherRelay => ({
  name,
  resources: known && new Set(known),
});

const countOf = (events: readonly FoundEvent[], resource: string): number =>
  events.filter((event) => event.resource === resource).length;

// How relays divide their reads; outbox.test.ts has the rest.
describe("createOutbox, for several relays", () => {
  const core = coreOfSuite();

  beforeEach(() => core.sql("TRUNCATE svc.events, svc.outbox CASCADE"));

  const addEvents = (count: number, resource: string, writer: string): Promise<unknown> =>
    core.sql(
      `WITH writer AS (SELECT set_config('application_name', $3, false) AS name)
       INSERT INTO svc.events (resource, trigger, record_id, snapshot)
       SELECT $2, 'on_create', n, '{}' FROM writer CROSS JOIN generate_series(1, $1::int) AS n ORDER BY n`,
      [count, resource, writer],
    );

  /** Runs the first read of a relay with these resources. */
  async function read(share: Share, of: readonly string[] = resources): Promise<readonly FoundEvent[]> {
    const { events } = await createOutbox({ sql: core.sql }).read({
      scans: createOutboxCursor(of).scans(of),
      share,
      known: [],
      limit: 100,
      maxBytes: 1024 ** 2,
    });
    return events;
  }

  it("gives each relay its own events, and divides those that none of them wrote", async () => {
    await addEvents(10, "notes", "one");
    await addEvents(10, "papers", "two");
    await addEvents(10, "notes", "psql");
    const shares: readonly Share[] = [
      { name: "one", others: [relay("two")] },
      { name: "two", others: [relay("one")] },
    ];

    const [one = [], two = []] = await Promise.all(shares.map((share) => read(share)));
    expect([countOf(one, "notes"), countOf(one, "papers")]).to.deep.equal([15, 0]);
    expect([countOf(two, "notes"), countOf(two, "papers")]).to.deep.equal([5, 10]);
    expect(new Set([...one, ...two].map(({ id }) => id)).size).to.equal(30);
  });

  it("gives a relay that does not know a resource no part of its events", async () => {
    await addEvents(10, "notes", "psql");
    await addEvents(12, "papers", "psql");
    await addEvents(2, "papers", "old");
    const relays = [relay("a", resources), relay("b", resources), relay("old", ["notes"])];
    const readAs = (name: string, of: readonly string[]): Promise<readonly FoundEvent[]> =>
      read({ name, others: relays.filter((other) => other.name !== name) }, of);

    const parts = await Promise.all([
      readAs("a", resources),
      readAs("b", resources),
      readAs("old", ["notes"]),
    ]);

    expect(parts.map((events) => countOf(events, "papers"))).to.deep.equal([7, 7, 0]);
    const all = parts.flat();
    expect(all).to.have.length(24);
    expect(new Set(all.map(({ id }) => id)).size).to.equal(24);
  });

  it("examines some entries of another relay at a time, and finds its own after them", async () => {
    await core.sql(
      `INSERT INTO svc.outbox (event_id, transaction_id, resource, writer, bytes)
       SELECT -n, n / 100, 'notes', 'one', 1 FROM generate_series(1, 45000) AS n`,
    );
    await addEvents(1, "notes", "two");
    const cursor = createOutboxCursor(["notes"]);
    const counts: number[] = [];
    while (!counts.includes(1) && counts.length < 20) {
      const { snapshot, events, scanned } = await createOutbox({ sql: core.sql }).read({
        scans: cursor.scans(["notes"]),
        share: { name: "two", others: [relay("one")] },
        known: [],
        limit: 100,
        maxBytes: 1024 ** 2,
      });
      cursor.advance(snapshot, scanned);
      counts.push(countOf(events, "notes"));
    }

    expect(counts[0]).to.equal(0);
    expect(counts.at(-1)).to.equal(1);
    expect(counts.length).to.be.most(6);
  });
});
