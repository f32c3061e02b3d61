import { expect } from "chai";
import { createOutbox, type Outbox, type OutboxEvent } from "../../src/events/outbox.ts";
import { openCoreDatabase, type CoreDatabase } from "../support/core-database.ts";
import { createWork, inSeconds, type Work } from "../support/work.ts";

const insertText = `INSERT INTO svc.events (resource, trigger, record_id, snapshot) VALUES ('notes', 'on_create', $1, '{}')`;
const recordsOf = (events: readonly OutboxEvent[]): readonly string[] =>
  events.map(({ recordId }) => recordId);

describe("createOutbox", () => {
  let core: CoreDatabase;
  let work: Work;
  let outbox: Outbox;

  before(async () => {
    core = await openCoreDatabase();
    work = createWork(core.database.prisma);
    outbox = createOutbox({ sql: core.sql });
  });

  beforeEach(() => work.clear());

  after(() => core.close());

  const addEvents = (count: number): Promise<unknown> =>
    core.sql(
      `INSERT INTO svc.events (resource, trigger, record_id, snapshot) SELECT 'notes', 'on_create', n, '{}' FROM generate_series(1, $1::int) AS n`,
      [count],
    );
  const claim = (limit = 100, leaseMs = 60_000): Promise<readonly OutboxEvent[]> =>
    outbox.claim({ limit, leaseMs });
  const claimStranded = (limit = 100): Promise<readonly OutboxEvent[]> =>
    outbox.claimStranded({ limit, leaseMs: 60_000 });

  describe("claim", () => {
    it("gives an event as it was captured", async () => {
      await work.addEvent({
        trigger: "on_update",
        recordId: "a/b",
        ownerId: "7",
        snapshot: { id: 1, text: "é" },
        occurredAt: new Date("2026-03-28T14:30:00Z"),
        relayFailures: 2,
      });
      await core.sql("UPDATE svc.events SET occurred_at = '2026-03-28T16:30:00.123456+02:00'");
      const [stored] = await work.events();

      expect(await claim()).to.deep.equal([
        {
          id: String(stored?.id),
          uuid: stored?.uuid,
          resource: "notes",
          trigger: "on_update",
          recordId: "a/b",
          ownerId: "7",
          snapshot: { id: 1, text: "é" },
          timestamp: "2026-03-28T14:30:00.123456Z",
          traceparent: null,
          failures: 2,
        },
      ]);
    });

    it("gives the oldest first, by number and not by text, and no event twice", async () => {
      await addEvents(12);

      const first = await claim(5);
      const second = await claim(100);

      expect(recordsOf([...first, ...second])).to.deep.equal(
        Array.from({ length: 12 }, (_, index) => String(index + 1)),
      );
      expect(first).to.have.length(5);
      expect(await claim()).to.deep.equal([]);
    });

    it("gives no event to two claimers at once, and lets neither wait for the other", async () => {
      await addEvents(20);
      const other = await core.database.pool.connect();
      try {
        await other.query("BEGIN");
        const there = createOutbox({
          sql: async (text, values = []) => (await other.query(text, [...values])).rows,
        });
        expect(await there.claim({ limit: 8, leaseMs: 60_000 })).to.have.length(8);

        const here = await claim();

        expect(recordsOf(here)).to.deep.equal(Array.from({ length: 12 }, (_, index) => String(index + 9)));
        await other.query("COMMIT");
      } finally {
        other.release();
      }
      expect(await claim()).to.deep.equal([]);
    });

    it("parts the events among many claimers", async () => {
      await addEvents(60);

      const claims = await Promise.all(Array.from({ length: 6 }, () => claim(10)));

      const records = claims.flatMap(recordsOf);
      expect(new Set(records).size).to.equal(records.length);
      expect(records.length + (await claim()).length).to.equal(60);
    });

    it("skips no event whose transaction commits after one with a greater id", async () => {
      const slow = await core.database.pool.connect();
      try {
        await slow.query("BEGIN");
        await slow.query(insertText, ["began first"]);
        await core.sql(insertText, ["committed first"]);
        expect(recordsOf(await claim())).to.deep.equal(["committed first"]);

        await slow.query("COMMIT");
      } finally {
        slow.release();
      }

      expect(recordsOf(await claim())).to.deep.equal(["began first"]);
    });

    it("gives an event up when the lease ends", async () => {
      await addEvents(1);
      await claim(1, -1000);

      expect(await claim()).to.have.length(1);
      expect(await claim()).to.have.length(0);
    });
  });

  describe("postpone", () => {
    it("keeps the reason, counts the failure and holds the event back for its own delay", async () => {
      await addEvents(1);
      for (const recordId of ["2", "3"]) await work.addEvent({ recordId, relayFailures: 4 });
      const [now, later] = await claim();

      await outbox.postpone([
        { id: now?.id ?? "", delayMs: -1000, reason: "unconfirmed: nack" },
        { id: later?.id ?? "", delayMs: 60_000, reason: "transform failed" },
      ]);

      expect((await claim()).map(({ recordId, failures }) => [recordId, failures])).to.deep.equal([["1", 1]]);
      const stored = await work.events();
      expect(stored.map(({ relayError, relayFailures }) => [relayError, relayFailures])).to.deep.equal([
        ["unconfirmed: nack", 1],
        ["transform failed", 5],
        [null, 4],
      ]);
      const waitMs = (stored[1]?.claimedUntil?.getTime() ?? 0) - Date.now();
      expect(waitMs).to.be.within(50_000, 60_000);
    });

    it("does nothing for nothing", async () => {
      await addEvents(1);
      await claim();

      await outbox.postpone([]);

      expect((await work.events())[0]).to.include({ relayFailures: 0, relayError: null });
    });
  });

  describe("markPublished", () => {
    it("takes events out of the claims and their old reason away", async () => {
      await addEvents(2);
      const [first, second] = await claim(100, -1000);
      await outbox.postpone([{ id: first?.id ?? "", delayMs: -1000, reason: "mended since" }]);

      await outbox.markPublished({ ids: [first?.id ?? ""], believedForMs: 60_000 });

      expect(recordsOf(await claim())).to.deep.equal([second?.recordId]);
      const [stored] = await work.events();
      expect(stored?.relayError).to.equal(null);
      expect(stored?.publishedAt).to.be.instanceOf(Date);
      expect(await claimStranded()).to.deep.equal([]);
    });
  });

  describe("claimStranded", () => {
    it("gives what was published and not fanned out in time, those believed longest first, and nothing else", async () => {
      const publishedAt = inSeconds(-60);
      for (const [recordId, more] of [
        ["younger", { publishedAt, claimedUntil: inSeconds(-5) }],
        ["older", { publishedAt, claimedUntil: inSeconds(-50) }],
        ["fanned out", { publishedAt, claimedUntil: inSeconds(-50), fannedOutAt: publishedAt }],
        ["believed", { publishedAt, claimedUntil: inSeconds(60) }],
        ["unpublished", {}],
      ] as const)
        await work.addEvent({ recordId, ...more });

      expect(recordsOf(await claimStranded(1))).to.deep.equal(["older"]);
      expect(recordsOf(await claimStranded())).to.deep.equal(["younger"]);
      expect(await claimStranded()).to.deep.equal([]);
    });
  });

  describe("forgetPublished", () => {
    it("gives back at once what is believed, claimed or postponed, and not what is fanned out", async () => {
      const publishedAt = inSeconds(-60);
      const claimedUntil = inSeconds(60);
      await work.addEvent({ recordId: "believed", publishedAt, claimedUntil });
      await work.addEvent({ recordId: "claimed", claimedUntil });
      await work.addEvent({ recordId: "done", publishedAt, claimedUntil, fannedOutAt: publishedAt });
      await work.addEvent({ recordId: "fresh" });

      await outbox.forgetPublished();

      expect(recordsOf(await claimStranded())).to.deep.equal(["believed"]);
      expect(recordsOf(await claim())).to.deep.equal(["claimed", "fresh"]);
    });
  });
});
