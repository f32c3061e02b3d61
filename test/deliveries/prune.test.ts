import { expect } from "chai";
import { runAdmin } from "../../src/admin.ts";
import { pruneEvents, type Pruned } from "../../src/deliveries/prune.ts";
import { openCoreDatabase, type CoreDatabase } from "../support/core-database.ts";
import { createMemoryTerminal } from "../support/memory-terminal.ts";
import { createWork, inSeconds, type Work } from "../support/work.ts";

const day = 86_400;
const old = inSeconds(-31 * day);
const young = inSeconds(-29 * day);

describe("pruneEvents", () => {
  let core: CoreDatabase;
  let work: Work;

  before(async () => {
    core = await openCoreDatabase();
    work = createWork(core.database.prisma);
  });

  beforeEach(() => work.clear());

  after(() => core.close());

  function prune({ isPlan = false } = {}): Promise<Pruned> {
    return pruneEvents({
      sql: core.sql,
      olderThanMs: 30 * day * 1_000,
      isPlan,
      onProgress: () => undefined,
    });
  }

  /** An event with one delivery; both 31 days old and finished, unless `changes` say otherwise. */
  async function addDelivered(
    delivery: Parameters<Work["addDelivery"]>[1] = {},
    event: Parameters<Work["addEvent"]>[0] = {},
  ): Promise<bigint> {
    const made = await work.addDelivery(await work.addSubscription(), {
      status: "delivered",
      nextAttemptAt: null,
      updatedAt: old,
      ...delivery,
    });
    await core.database.prisma.event.update({
      where: { id: made.eventId },
      data: { occurredAt: old, publishedAt: old, fannedOutAt: old, ...event },
    });
    return made.eventId;
  }

  async function eventIds(): Promise<readonly bigint[]> {
    return (await work.events()).map(({ id }) => id);
  }

  it("deletes old events with their deliveries and attempts", async () => {
    for (let i = 0; i < 5; i++) await addDelivered();
    const kept = await addDelivered({}, { fannedOutAt: young, occurredAt: young });
    await core.sql(
      "INSERT INTO svc.attempts (delivery_id, number, started_at, duration_ms) SELECT id, 1, now(), 1 FROM svc.deliveries",
    );

    expect(await prune()).to.deep.equal({ events: 5, deliveries: 5 });
    expect(await eventIds()).to.deep.equal([kept]);
    expect(await work.deliveries()).to.have.length(1);
    expect(await core.sql("SELECT FROM svc.attempts")).to.have.length(1);
  });

  it("deletes an event that nobody subscribed to", async () => {
    await work.addEvent({ occurredAt: old, fannedOutAt: old });

    expect(await prune()).to.deep.equal({ events: 1, deliveries: 0 });
    expect(await eventIds()).to.deep.equal([]);
  });

  const kept: readonly (readonly [
    string,
    Parameters<typeof addDelivered>[0],
    Parameters<typeof addDelivered>[1],
  ])[] = [
    ["was not fanned out yet", {}, { fannedOutAt: null }],
    ["was fanned out later", {}, { fannedOutAt: young }],
    ["has a delivery that waits for its first attempt", { status: "pending" }, {}],
    ["has a delivery that is retried", { status: "retrying" }, {}],
    ["has a delivery that was finished later", { updatedAt: young }, {}],
    ["has a failed delivery whose dead letter was not confirmed", { status: "failed" }, {}],
  ];
  for (const [fact, delivery, event] of kept) {
    it(`keeps an event that ${fact}`, async () => {
      const id = await addDelivered(delivery, event);

      expect(await prune()).to.deep.equal({ events: 0, deliveries: 0 });
      expect(await eventIds()).to.deep.equal([id]);
      expect(await work.deliveries()).to.have.length(1);
    });
  }

  it("deletes one whose deliveries failed and were cancelled", async () => {
    await addDelivered({ status: "failed", deadLetteredAt: old });
    await addDelivered({ status: "cancelled" });

    expect(await prune()).to.deep.equal({ events: 2, deliveries: 2 });
  });

  it("goes past pages of old events that must stay, to those behind them", async () => {
    const addOld = (count: number, fannedOutAt: Date | null): Promise<unknown> =>
      core.sql(
        `INSERT INTO svc.events (resource, trigger, record_id, snapshot, occurred_at, fanned_out_at)
         SELECT 'notes', 'on_create', '1', '{}', $2::timestamptz, $3::timestamptz FROM generate_series(1, $1)`,
        [count, old, fannedOutAt],
      );
    await addOld(2_100, null);
    await addOld(1_100, old);

    expect(await prune()).to.deep.equal({ events: 1_100, deliveries: 0 });
    expect(await eventIds()).to.have.length(2_100);
  });

  it("counts the same and deletes nothing when it only plans", async () => {
    for (let i = 0; i < 3; i++) await addDelivered();

    expect(await prune({ isPlan: true })).to.deep.equal({ events: 3, deliveries: 3 });
    expect(await prune()).to.deep.equal({ events: 3, deliveries: 3 });
  });

  it("is svc-admin prune, which wants to know how old", async () => {
    await addDelivered();
    const terminal = createMemoryTerminal();
    const run = (...args: readonly string[]): Promise<number> =>
      runAdmin({ args: ["prune", ...args], env: { DATABASE_URL: core.url }, cwd: process.cwd(), terminal });

    expect(await run()).to.equal(2);
    expect(await run("--older-than", "0d")).to.equal(2);
    terminal.read();
    expect(await run("--older-than", "30d", "--plan")).to.equal(0);
    expect(terminal.read().stdout).to.equal("1 events and 1 deliveries would be deleted.\n");
    expect(await run("--older-than", "32d", "--json")).to.equal(0);
    expect(JSON.parse(terminal.read().stdout)).to.deep.equal({ events: 0, deliveries: 0 });
    expect(await run("--older-than", "30d")).to.equal(0);
    expect(terminal.read()).to.deep.equal({ stdout: "1 events and 1 deliveries deleted.\n", stderr: "" });
  });
});
