import { expect } from "chai";
import {
  createEventFeed,
  type EventFeed,
  type FeedPage,
  type FeedQuery,
} from "../../src/events/event-feed.ts";
import { ResultTooLargeError } from "../../src/db/result-limit.ts";
import { openCoreDatabase, type CoreDatabase } from "../support/core-database.ts";
import { makeCaller } from "../support/callers.ts";

const ada = makeCaller({ id: 7, name: "Ada", email: "ada@example.com", isAdmin: false });
const notes: FeedQuery = { resources: ["notes"] };

const idsOf = ({ events }: FeedPage): readonly number[] => events.map(({ id }) => Number(id));

/** Returns the shown records of the events of a page. */
const shownIn = ({ events }: FeedPage): readonly unknown[] =>
  events.map(({ json }) => {
    const { data, previous } = JSON.parse(json) as Record<string, unknown>;
    return { data, previous };
  });

describe("createEventFeed", () => {
  let core: CoreDatabase;
  let feed: EventFeed;
  /** Events up to this one are visible. */
  let horizon: bigint;
  /** Whether Ada may read the old row of an event. */
  let readsPrevious: boolean;
  /** Whether the readers are known. */
  let isKnown: boolean;
  /** Most events whose readers are decided together. */
  let mostJudged: number;
  /** Most events that are presented together. */
  let mostAtOnce: number;
  /** Most events that a statement can read in time. */
  let mostInTime: number;
  /** Sizes of the groups that were presented together, in order. */
  let presented: number[];
  /** Shown for every event, in place of its snapshot. */
  let shared: unknown;

  beforeEach(async () => {
    core = await openCoreDatabase();
    horizon = 1_000_000n;
    readsPrevious = true;
    isKnown = true;
    mostJudged = Infinity;
    mostAtOnce = Infinity;
    mostInTime = Infinity;
    presented = [];
    shared = undefined;
    feed = createEventFeed({
      sql: core.sql,
      listSql: core.sql,
      horizon: () => Promise.resolve(horizon),
      judge: (pairs, which) =>
        Promise.resolve(
          pairs.map(({ event, user }, index) =>
            isKnown && index < mostJudged
              ? event.owner_id === String(user.id) && (which !== "previous" || readsPrevious)
              : undefined,
          ),
        ),
      async present(_resource, events) {
        presented.push(events.length);
        if (events.length > mostAtOnce) throw new ResultTooLargeError(1000, mostAtOnce);
        if (events.length > mostInTime)
          return { kind: "none", reason: "statement timeout", isPassing: true, isTooSlow: true };
        return {
          kind: "each",
          answers: events.map(({ snapshot, previous }) => ({
            kind: "presented",
            data: shared ?? snapshot,
            previous: previous ?? undefined,
          })),
        };
      },
    });
  });
  afterEach(() => core.close());

  /** Writes events, each of another record, with continuing numbers. */
  async function write(
    count: number,
    { resource = "notes", trigger = "on_create", owner = 7, record = "" } = {},
  ): Promise<void> {
    await core.sql(
      `INSERT INTO svc.events (resource, trigger, record_id, owner_id, snapshot, previous)
       SELECT $1, $2, CASE WHEN $4 = '' THEN n::text ELSE $4 END, $3::int, '{"is": "new"}',
         CASE WHEN $2 = 'on_update' THEN '{"is": "old"}'::jsonb END
       FROM generate_series(1, $5::int) AS n`,
      [resource, trigger, owner, record, count],
    );
  }

  const read = (after: bigint, take: number, query = notes): Promise<FeedPage> =>
    feed.read({ query, caller: ada, after, take });
  const readBack = (before: bigint | undefined, take: number, query = notes): Promise<FeedPage> =>
    feed.readBack({ query, caller: ada, before, take });

  it("reads events after an id and up to the horizon, and returns where to continue", async () => {
    await write(5);
    horizon = 4n;

    const page = await read(2n, 10);

    expect([idsOf(page), page.next, page.hasMore]).to.deep.equal([[3, 4], 4n, false]);
    horizon = 5n;
    expect(idsOf(await read(page.next, 10))).to.deep.equal([5]);
  });

  it("reads back from before an id, from the newest, and from the horizon where the id is beyond it", async () => {
    await write(5);
    horizon = 4n;

    const pages = await Promise.all([3n, 4n, 5n, 900n, undefined].map((before) => readBack(before, 10)));

    expect(pages.map(idsOf)).to.deep.equal([
      [2, 1],
      [3, 2, 1],
      [4, 3, 2, 1],
      [4, 3, 2, 1],
      [4, 3, 2, 1],
    ]);
    expect(pages.some(({ hasMore }) => hasMore)).to.equal(false);
  });

  it("first reads as many of the newest as fitted the last time", async () => {
    await write(20);
    mostAtOnce = 3;

    const pages = [await readBack(undefined, 10), await readBack(undefined, 10), await read(0n, 10)];

    expect(pages.map(idsOf)).to.deep.equal([
      [20, 19, 18],
      [20, 19, 18],
      [1, 2, 3],
    ]);
    expect(pages.map(({ size, next, hasMore }) => [size, next, hasMore])).to.deep.equal([
      [3, 18n, true],
      [3, 18n, true],
      [3, 3n, true],
    ]);
    // Another page has other events.
    expect(presented).to.deep.equal([10, 3, 3, 10, 3]);
  });

  it("returns each event once by pages, forward and back, among those of others", async () => {
    for (const owner of [7, 8, 7, 7, 8, 8, 7, 7]) await write(1, { owner });
    await write(1, { resource: "pages" });
    horizon = 9n;
    const [there, back]: number[][] = [[], []];

    for (let page = await read(0n, 2); ; page = await read(page.next, 2)) {
      there?.push(...idsOf(page));
      if (!page.hasMore) break;
    }
    for (let page = await readBack(undefined, 2); ; page = await readBack(page.next, 2)) {
      back?.push(...idsOf(page));
      if (!page.hasMore) break;
    }

    expect(there).to.deep.equal([1, 3, 4, 7, 8]);
    expect(back).to.deep.equal([8, 7, 4, 3, 1]);
  });

  it("scans 5,000 events for a page, and continues after them", async () => {
    await write(1);
    await write(5_500, { owner: 8 });
    await write(1);
    horizon = 5_502n;

    const [first, last] = [await read(1n, 10), await readBack(5_502n, 10)];

    expect([idsOf(first), first.next, first.hasMore]).to.deep.equal([[], 5_001n, true]);
    expect(idsOf(await read(first.next, 10))).to.deep.equal([5_502]);
    expect([idsOf(last), last.next, last.hasMore]).to.deep.equal([[], 502n, true]);
    expect(idsOf(await readBack(last.next, 10))).to.deep.equal([1]);
  });

  it("reads all of a record that has more than a portion, and only its requested triggers", async () => {
    await write(1_001, { record: "r" });
    await write(1, { trigger: "on_delete", record: "r" });
    await write(1, { record: "other" });
    const query = { ...notes, recordId: "r" };

    expect(idsOf(await read(0n, 2_000, query))).to.have.length(1_002);
    expect(idsOf(await readBack(undefined, 2_000, query))).to.have.length(1_002);
    expect(idsOf(await read(0n, 10, { ...query, triggers: ["on_delete"] }))).to.deep.equal([1_002]);
    expect(idsOf(await read(0n, 10, { ...notes, triggers: ["on_delete"] }))).to.deep.equal([1_002]);

    await write(1, { resource: "pages", record: "r" });
    await write(1, { record: "r" });
    const ofBoth = { resources: ["pages", "notes"], recordId: "r" };
    expect(idsOf(await read(1_001n, 10, ofBoth))).to.deep.equal([1_002, 1_004, 1_005]);
    expect(idsOf(await readBack(undefined, 2, ofBoth))).to.deep.equal([1_005, 1_004]);
  });

  it("finds an event by its whole UUID, of a requested resource, for its readers", async () => {
    await write(1);
    await write(1, { owner: 8 });
    const rows = await core.sql<{ uuid: string }>("SELECT uuid FROM svc.events ORDER BY id");
    const [own = "", others = ""] = rows.map(({ uuid }) => uuid);
    const forged = own.slice(0, -1) + (own.endsWith("0") ? "1" : "0");

    expect((await feed.find(own, ada, ["notes"]))?.id).to.equal("1");
    for (const [uuid, resources] of [
      [own, ["pages"]],
      [forged, ["notes"]],
      [others, ["notes"]],
    ] as const)
      expect(await feed.find(uuid, ada, resources)).to.equal(undefined);
  });

  it("shows the old row to its readers, whether or not the event had deliveries", async () => {
    await write(2, { trigger: "on_update" });
    await core.sql(
      `INSERT INTO svc.event_data (event_id, data, previous) VALUES (2, '{"is":"new"}', '{"is":"old"}')`,
    );
    const all = { data: { is: "new" }, previous: { is: "old" } };
    expect(shownIn(await read(0n, 10))).to.deep.equal([all, all]);
    readsPrevious = false;
    const less = { data: { is: "new" }, previous: undefined };
    expect(shownIn(await read(0n, 10))).to.deep.equal([less, less]);
  });

  it("ends a page early when related records are too large, and shows a single one without them", async () => {
    await write(5);
    mostAtOnce = 2;

    const page = await read(0n, 5);

    expect([idsOf(page), page.next, page.hasMore]).to.deep.equal([[1, 2], 2n, true]);
    mostAtOnce = 0;
    expect(shownIn(await read(4n, 5))).to.deep.equal([{ data: null, previous: undefined }]);
    const [row] = await core.sql<{ uuid: string }>("SELECT uuid FROM svc.events WHERE id = 5");
    const found = await feed.find(row?.uuid ?? "", ada, ["notes"]);
    expect(JSON.parse(found?.json ?? "")).to.include({
      data: null,
      problem: "The record is larger than an answer may be.",
    });
  });

  it("ends a page early when many events show one large record", async () => {
    await write(3);
    shared = { customer: "a".repeat(3_000_000) };

    const page = await read(0n, 3);

    expect([idsOf(page), page.next, page.hasMore]).to.deep.equal([[1], 1n, true]);
    expect(shownIn(page)).to.deep.equal([{ data: shared, previous: undefined }]);
  });

  const codeOfRead = (): Promise<string | undefined> =>
    read(0n, 10).then(
      () => "none",
      (error: unknown) => (error as { readonly code?: string }).code,
    );

  it("ends a page early when its events take too long together, and skips none that does alone", async () => {
    await write(5);
    mostInTime = 1;

    const page = await read(0n, 5);

    expect([idsOf(page), page.next, page.hasMore]).to.deep.equal([[1], 1n, true]);
    expect(presented).to.deep.equal([5, 2, 1]);
    mostInTime = 0;
    expect(await codeOfRead()).to.equal("server.unavailable");
  });

  it("ends a page before an event whose readers cannot be decided yet, and skips none", async () => {
    await write(3, { owner: 8 });
    await write(4, { trigger: "on_update" });
    mostJudged = 5;

    const first = await read(0n, 10);
    const back = await readBack(undefined, 10);

    expect([idsOf(first), first.next, first.hasMore]).to.deep.equal([[4, 5], 5n, true]);
    expect([idsOf(back), back.next, back.hasMore]).to.deep.equal([[7, 6, 5, 4], 3n, true]);
    mostJudged = 1;
    expect(idsOf(await read(3n, 10))).to.deep.equal([4]);
    expect(idsOf(await read(0n, 10))).to.deep.equal([]);
  });

  it("fails when the readers cannot be decided, and skips nothing", async () => {
    await write(1);
    isKnown = false;

    expect(await codeOfRead()).to.equal("server.unavailable");
  });
});
