import { expect } from "chai";
import { setTimeout as sleep } from "node:timers/promises";
import type { QueryResultRow } from "pg";
import { files } from "../../bench/hold-ups/resources.ts";
import { subscribe } from "../support/notes.ts";
import { hang, startReceiver, type TestReceiver } from "../support/receiver.ts";
import { startService, type TestService, type TestUser } from "../support/service.ts";
import { until } from "../support/wait.ts";

/**
 * A short version of `npm run holdups`, by order and progress: while Ada blocks a part, Bob's later
 * changes arrive. That script measures the time.
 */
describe("what one party holds up", function () {
  this.timeout(60_000);
  const changes = 20;
  const releases: (() => Promise<unknown>)[] = [];
  let service: TestService;
  let ada: TestUser;
  let bob: TestUser;
  let quick: TestReceiver;

  before(async () => {
    service = await startService({
      mode: "servers",
      resources: files,
      // A hanging receiver hangs for the whole test.
      webhooks: { timeoutMs: 60_000 },
    });
    [ada, bob] = [await service.createUser(), await service.createUser()];
    quick = await startReceiver();
    await subscribe(bob, quick, { events: ["on_create"] });
  });
  afterEach(async () => {
    for (const release of releases.splice(0).toReversed()) await release();
  });
  after(async () => {
    await quick?.close();
    await service?.stop();
  });

  const sql = <R extends QueryResultRow>(text: string, values: readonly unknown[] = []): Promise<R[]> =>
    service.infrastructure.sql<R>(text, values);
  const addNotes = (user: TestUser, count: number): Promise<unknown> =>
    sql("INSERT INTO notes (text, user_id) SELECT 'note ' || n, $1 FROM generate_series(1, $2::int) AS n", [
      user.id,
      count,
    ]);
  const left = async (resource: string): Promise<number> => {
    const [row] = await sql<{ count: number }>(
      "SELECT count(*)::int AS count FROM svc.outbox WHERE resource = $1",
      [resource],
    );
    return row?.count ?? 0;
  };
  const openFor = async (wanted: {
    readonly resource: string;
    readonly answer?: TestReceiver["answer"];
  }): Promise<TestReceiver> => {
    const receiver = await startReceiver();
    if (wanted.answer !== undefined) receiver.answer = wanted.answer;
    releases.push(() => receiver.close());
    await subscribe(ada, receiver, { resource: wanted.resource, events: ["on_create"] });
    return receiver;
  };
  /** One at a time, as from an ordinary user. */
  const bobsArrive = async (): Promise<void> => {
    const before = quick.received.length;
    for (let made = 1; made <= changes; made += 1) {
      await addNotes(bob, 1);
      await quick.waitFor(before + made, { timeoutMs: 20_000 });
    }
  };

  it("by 2,000 events that cannot be presented does not stop events of another resource", async () => {
    await openFor({ resource: "poisons" });
    await sql("INSERT INTO poisons (user_id) SELECT $1 FROM generate_series(1, 2000)", [ada.id]);

    await bobsArrive();

    expect(await left("poisons"), "events that still wait").to.equal(2_000);
    await sql("DELETE FROM svc.outbox WHERE resource = 'poisons'");
  });

  it("by a lock on a table that a resource includes does not stop events of another", async () => {
    const receiver = await openFor({ resource: "visits" });
    await sql("INSERT INTO places (id, name) VALUES (1, 'Here')");
    const client = await service.infrastructure.database.pool.connect();
    try {
      // The reference of a row of its own would also wait for the lock.
      await sql("ALTER TABLE visits DISABLE TRIGGER ALL");
      await sql("ALTER TABLE visits ENABLE TRIGGER USER");
      await client.query("BEGIN; LOCK TABLE places IN ACCESS EXCLUSIVE MODE");
      await sql("INSERT INTO visits (place_id, user_id) SELECT 1, $1 FROM generate_series(1, 50)", [ada.id]);

      await bobsArrive();

      expect([await left("visits"), receiver.received.length]).to.deep.equal([50, 0]);
    } finally {
      await client.query("ROLLBACK");
      client.release();
    }
    await receiver.waitFor(50, { timeoutMs: 20_000 });
  });

  it("by four receivers of one user that hang does not stop deliveries of another", async () => {
    const receivers = await Promise.all([1, 2, 3, 4].map(() => openFor({ resource: "notes", answer: hang })));
    const hanging = (): number => receivers.reduce((sum, { received }) => sum + received.length, 0);
    await addNotes(ada, 100);
    // One user may have half of the slots for first attempts.
    await until(() => hanging() >= 24, { what: "the user's slots to be taken" });

    await bobsArrive();

    expect(hanging(), "POSTs that hang").to.be.below(100);
  });

  it("by one statement of 20,000 rows does not stop later changes", async () => {
    const receiver = await openFor({ resource: "notes" });
    const before = quick.received.length;
    await addNotes(ada, 20_000);

    await addNotes(bob, 1);

    await quick.waitFor(before + 1, { timeoutMs: 20_000 });
    expect(receiver.received.length, "rows of the statement that came first").to.be.below(20_000);
    expect(await left("notes"), "rows that wait").to.be.above(0);
  });

  it("by 1,000 changes a second for 50 webhooks of their user does not stop those of another", async () => {
    const eve = await service.createUser();
    const receiver = await startReceiver();
    releases.push(() => receiver.close());
    for (let made = 0; made < 50; made += 1) await subscribe(eve, receiver, { events: ["on_create"] });
    let isOver = false;
    const flood = async (): Promise<void> => {
      while (!isOver) {
        await addNotes(eve, 100);
        await sleep(100);
      }
    };
    const flooding = flood();
    await until(async () => (await left("notes")) > 1_000, { what: "more than gets through" });

    try {
      await bobsArrive();

      expect(await left("notes"), "changes that wait").to.be.above(1_000);
    } finally {
      isOver = true;
      await flooding;
      await sql("DELETE FROM svc.outbox WHERE owner_id = $1::text", [eve.id]);
    }
  });
});
