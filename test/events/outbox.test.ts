import { expect } from "chai";
import type { PoolClient } from "pg";
import { createOutboxCursor, type OutboxCursor } from "../../src/events/outbox-cursor.ts";
import { createOutbox, positionOf, type FoundEvent, type Outbox } from "../../src/events/outbox.ts";
import type { Share } from "../../src/events/relay-shares.ts";
import { openDatabase } from "../../src/db/client.ts";
import { createSql, sqlOver } from "../../src/db/sql.ts";
import { firstNew } from "../support/first-new.ts";
import { coreOfSuite } from "../support/core-database.ts";
import { until } from "../support/wait.ts";
import { createWork, type Work } from "../support/work.ts";

const alone: Share = { name: "svc", others: [] };
const resources = ["notes", "papers"];
const insertText = `INSERT INTO svc.events (resource, trigger, record_id, snapshot) VALUES ('notes', 'on_create', $1, '{}')`;

const recordsOf = (events: readonly FoundEvent[]): readonly string[] =>
  events.map(({ recordId }) => recordId);

describe("createOutbox", () => {
  const core = coreOfSuite();
  let work: Work;
  let outbox: Outbox;
  let cursor: OutboxCursor;
  /** Ids of the events in flight, as the relay has them. */
  let inFlight: Set<string>;
  let open: Set<PoolClient>;

  before(async () => {
    work = createWork(core.prisma);
    outbox = createOutbox({ sql: core.sql });
  });

  beforeEach(async () => {
    await work.clear();
    cursor = createOutboxCursor(resources);
    inFlight = new Set();
    open = new Set();
  });

  afterEach(async () => {
    for (const client of open) await end(client, "ROLLBACK");
  });

  const addEvents = (count: number, resource = "notes", writer = "svc"): Promise<unknown> =>
    core.sql(
      `WITH writer AS (SELECT set_config('application_name', $3, false) AS name)
       INSERT INTO svc.events (resource, trigger, record_id, snapshot)
       SELECT $2, 'on_create', n, '{}' FROM writer CROSS JOIN generate_series(1, $1::int) AS n ORDER BY n`,
      [count, resource, writer],
    );

  /** Runs one read of new and remaining events. */
  async function read({
    of = resources,
    share = alone,
    known = [...inFlight],
    limit = 100,
    maxBytes = 1024 ** 2,
    from = cursor,
  }: {
    readonly of?: readonly string[];
    readonly share?: Share;
    readonly known?: readonly string[];
    readonly limit?: number;
    readonly maxBytes?: number;
    readonly from?: OutboxCursor;
  } = {}): Promise<readonly FoundEvent[]> {
    const { snapshot, events, scanned } = await outbox.read({
      scans: from.scans(of),
      share,
      known,
      limit,
      maxBytes,
    });
    from.advance(snapshot, scanned);
    if (from === cursor) for (const { id } of events) inFlight.add(id);
    return events;
  }

  /** Reads all events. Returns their record ids, each as often as it was read. */
  async function readAll(options: Parameters<typeof read>[0] = {}): Promise<string[]> {
    const records: string[] = [];
    for (let isMore = true; isMore;) {
      const events = await read(options);
      records.push(...recordsOf(events));
      isMore = events.length > 0 || cursor.hasLeftOver(resources);
    }
    return records;
  }

  /** Begins another transaction. */
  async function begin(): Promise<PoolClient> {
    const client = await core.database.pool.connect();
    open.add(client);
    await client.query("BEGIN");
    return client;
  }

  async function end(client: PoolClient, how: "COMMIT" | "ROLLBACK" = "COMMIT"): Promise<void> {
    open.delete(client);
    await client.query(how);
    client.release();
  }

  describe("read", () => {
    it("reads each event by its key, also with a plan from when the table was empty", async () => {
      const database = await openDatabase({ url: core.url, poolSize: 1, relays: true, isEmbedded: false });
      try {
        const sql = createSql({ pool: database.relay, isEmbedded: false });
        const early = createOutbox({ sql });
        const readEarly = async (): Promise<number> => {
          const whole = createOutboxCursor(resources).scans(resources);
          const options = { scans: whole, share: alone, known: [], limit: 50, maxBytes: 1024 ** 2 };
          return (await early.read(options)).events.length;
        };
        await core.sql("VACUUM ANALYZE svc.events");
        await core.sql("VACUUM ANALYZE svc.outbox");
        // From the sixth time on, PostgreSQL keeps the plan.
        for (let time = 0; time < 8; time += 1) {
          await readAll();
          await early.find(["1"]);
        }
        await addEvents(2_000);
        const ids = await sql<{ readonly id: string }>("SELECT id FROM svc.events ORDER BY id LIMIT 50");
        const countText = `SELECT pg_stat_force_next_flush(), idx_tup_read::int AS read
        FROM pg_stat_user_indexes WHERE indexrelname = 'events_pkey'`;
        const readBefore = (await sql<{ readonly read: number }>(countText))[0]?.read ?? 0;

        expect(await readEarly()).to.equal(50);
        expect(await early.find(ids.map(({ id }) => id))).to.have.length(50);

        await until(
          async () => ((await sql<{ readonly read: number }>(countText))[0]?.read ?? 0) >= readBefore + 100,
          { what: "the statistics of both reads" },
        );
        expect(((await sql<{ readonly read: number }>(countText))[0]?.read ?? 0) - readBefore).to.be.below(
          1_000,
        );
      } finally {
        await database.close();
      }
    });

    it("returns the session that answered, by more than a number that is repeated after a restart", async () => {
      const sql = sqlOver(await begin());
      const [own] = await sql<{ readonly pid: number; readonly since: string }>(
        "SELECT pg_backend_pid() AS pid, pg_postmaster_start_time()::text AS since",
      );

      const options = { scans: [], share: alone, known: [], limit: 1, maxBytes: 1 };
      const { session } = await createOutbox({ sql }).read(options);

      expect(session).to.equal(`${own?.pid} ${own?.since}`);
    });

    it("returns an event as it was captured", async () => {
      await work.addEvent({
        trigger: "on_update",
        recordId: "a/b",
        ownerId: "7",
        snapshot: { id: 1, text: "é" },
      });
      await core.sql("UPDATE svc.events SET occurred_at = '2026-03-28T16:30:00.123456+02:00'");
      const [stored] = await work.events();

      const [event, ...more] = await read();

      expect(more).to.deep.equal([]);
      expect(event).to.deep.include({
        id: String(stored?.id),
        uuid: stored?.uuid,
        resource: "notes",
        trigger: "on_update",
        recordId: "a/b",
        ownerId: "7",
        snapshot: { id: 1, text: "é" },
        timestamp: "2026-03-28T14:30:00.123456Z",
        traceparent: null,
      });
      expect(event?.bytes).to.be.above(10);
      expect(await read()).to.deep.equal([]);
    });

    it("omits a record that is too large for any message, but not because of its old row", async () => {
      const large = { text: "a".repeat(17_000_000) };
      await work.addEvent({ snapshot: large });
      await work.addEvent({ trigger: "on_update", snapshot: { text: "new" }, previous: large });
      const own = createOutbox({ sql: core.sql, shownAsCaptured: ["notes"] });

      const ids = (await work.events()).map(({ id }) => String(id));
      const found = await own.find(ids);

      expect(found.map(({ snapshot }) => snapshot)).to.deep.equal([null, { text: "new" }]);
      expect(found[0]?.bytes).to.be.within(17_000_000, 17_001_000);
      const [whole] = await outbox.find(ids);
      expect(whole?.snapshot).to.deep.equal(large);
    });

    it("counts the bytes of a snapshot before they are compressed", async () => {
      await work.addEvent({ snapshot: { text: "a".repeat(100_000) } });

      expect((await read())[0]?.bytes).to.be.within(100_000, 101_000);
    });

    it("reads all events in their order, in portions, in turns over the resources", async () => {
      await addEvents(5);
      await addEvents(2, "papers");

      const portions = [];
      for (let count = 0; count < 3; count++)
        portions.push(
          (await read({ limit: 3 })).map(({ resource, recordId }) => `${resource} ${recordId}`).toSorted(),
        );

      expect(portions).to.deep.equal([
        ["notes 1", "notes 2", "papers 1"],
        ["notes 3", "notes 4", "papers 2"],
        ["notes 5"],
      ]);
    });

    it("ends a read after that many bytes, and at least one event", async () => {
      await addEvents(3);
      const [first] = await read({ limit: 1, from: createOutboxCursor(resources) });
      const bytes = first?.bytes ?? 0;

      expect(recordsOf(await read({ maxBytes: bytes + 1 }))).to.deep.equal(["1", "2"]);
      expect(recordsOf(await read({ maxBytes: 1 }))).to.deep.equal(["3"]);
    });

    it("omits known events, and returns those after them", async () => {
      await addEvents(6);
      const known = (await read({ limit: 4, from: createOutboxCursor(resources) })).map(({ id }) => id);

      expect(recordsOf(await read({ known, limit: 2 }))).to.deep.equal(["5", "6"]);
    });

    it("returns nothing of resources that are not requested, and returns it later", async () => {
      await addEvents(2);
      await addEvents(2, "papers");

      expect(recordsOf(await read({ of: ["papers"] }))).to.deep.equal(["1", "2"]);
      await addEvents(1);
      expect(await readAll()).to.deep.equal(["1", "1", "2"].toSorted());
    });

    it("returns an event again that was given back, as the last of its range", async () => {
      await addEvents(2);
      const [event] = await read();
      const at = positionOf(event!);
      cursor.giveBack("notes", { from: { ...at, event: at.event - 1n }, to: at });

      expect(recordsOf(await read({ known: [] }))).to.deep.equal(["1"]);
    });

    it("skips an event whose row was deleted by hand", async () => {
      await addEvents(3);
      await core.sql("DELETE FROM svc.events WHERE record_id = '2'");

      expect(await readAll({ limit: 1 })).to.deep.equal(["1", "3"]);
    });

    it("gives a single relay the events of other writers too", async () => {
      await addEvents(2, "notes", "gone");

      expect(recordsOf(await read())).to.deep.equal(["1", "2"]);
    });
  });

  describe("with writers at once", () => {
    it("returns the events of a transaction that commits after one that began, wrote and got its ids later", async () => {
      const early = await begin();
      await early.query(insertText, ["early"]);
      await core.sql(insertText, ["late"]);
      expect(recordsOf(await read())).to.deep.equal(["late"]);

      await end(early);

      expect(recordsOf(await read())).to.deep.equal(["early"]);
    });

    it("returns the kept events of a transaction with savepoints, and nothing of one that was rolled back", async () => {
      const [kept, gone] = [await begin(), await begin()];
      await gone.query(insertText, ["rolled back"]);
      await kept.query("SAVEPOINT a");
      await kept.query(insertText, ["in a"]);
      await core.sql(insertText, ["between"]);
      expect(recordsOf(await read())).to.deep.equal(["between"]);
      await kept.query("RELEASE a; SAVEPOINT b");
      await kept.query(insertText, ["in b"]);
      await kept.query("ROLLBACK TO b");
      await kept.query(insertText, ["after b"]);
      await end(gone, "ROLLBACK");
      await core.sql(insertText, ["last"]);
      expect(recordsOf(await read())).to.deep.equal(["last"]);

      await end(kept);

      expect(await readAll()).to.deep.equal(["in a", "after b"]);
    });

    it("returns the events of a long transaction, many reads and writes later, and each of the others once", async () => {
      const long = await begin();
      await long.query(insertText, ["long"]);
      const found: string[] = [];
      for (let count = 0; count < 20; count++) {
        await core.sql(insertText, [String(count)]);
        found.push(...recordsOf(await read()));
      }
      const transaction = firstNew(cursor);

      await long.query(insertText, ["longer"]);
      await end(long);

      expect(new Set(found).size).to.equal(20);
      expect(await readAll()).to.deep.equal(["long", "longer"]);
      expect(firstNew(cursor) >= transaction).to.equal(true);
    });

    it("skips none of 20,000 rows of one statement, while others write and read events are fanned out", async () => {
      const bulk = addEvents(20_000);
      let isWriting = true;
      let committed = 0;
      const writers = Array.from({ length: 2 }, async (_, writer) => {
        while (isWriting) {
          const client = await begin();
          await client.query(insertText, [`${writer} ${committed}`]);
          if (Math.random() < 0.2) await end(client, "ROLLBACK");
          else {
            await end(client);
            committed += 1;
          }
        }
      });
      const read1000 = async (): Promise<readonly FoundEvent[]> => {
        const events = await read({ limit: 1_000, maxBytes: 8 * 1024 ** 2 });
        const ids = events.map(({ id }) => id);
        await core.sql("DELETE FROM svc.outbox WHERE event_id = ANY($1::bigint[])", [ids]);
        for (const id of ids) found.add(id);
        inFlight.clear();
        return events;
      };
      const found = new Set<string>();

      while (found.size < 12_000) await read1000();
      isWriting = false;
      await Promise.all([bulk, ...writers]);
      for (let isMore = true; isMore;)
        isMore = (await read1000()).length > 0 || cursor.hasLeftOver(resources);

      expect(await work.outbox()).to.deep.equal([]);
      expect(found.size).to.equal(20_000 + committed);
    });
  });

  describe("find and waiting", () => {
    it("return those that are not fanned out", async () => {
      await addEvents(3);
      const events = await read();
      const ids = events.map(({ id }) => id);
      await core.sql("DELETE FROM svc.outbox WHERE event_id = $1", [ids[1]]);

      const found = await outbox.find([...ids, "9000000000"]);
      expect(found).to.have.length(2);
      for (const [index, event] of found.entries()) expect(events[2 * index]).to.deep.include(event);
      expect([...(await outbox.waiting([...ids, "9000000000"])).keys()]).to.have.members([ids[0], ids[2]]);
      expect(await outbox.find([])).to.deep.equal([]);
      const [first, second] = await outbox.find(ids, 1);
      expect([first?.id, second]).to.deep.equal([ids[0], undefined]);
      expect((await outbox.waiting([])).size).to.equal(0);
    });
  });

  describe("resources", () => {
    it("returns each resource with events once", async () => {
      await addEvents(2, "papers");
      await addEvents(2);
      await addEvents(1, "a");
      await core.sql("DELETE FROM svc.outbox WHERE resource = 'a'");

      expect(await outbox.resources()).to.deep.equal(["notes", "papers"]);
      await work.clear();
      expect(await outbox.resources()).to.deep.equal([]);
    });
  });
});
