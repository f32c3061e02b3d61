import { expect } from "chai";
import type { PoolClient } from "pg";
import type { EventModel } from "../support/generated/models.ts";
import { createSql } from "../../src/db/sql.ts";
import { openDatabase } from "../../src/db/client.ts";
import { createDeliveryStore, type DeliveryStore } from "../../src/deliveries/store.ts";
import type { KnownAt } from "../../src/subscriptions/known-subscribers.ts";
import { agePool, knownNow } from "../support/known-subscribers.ts";
import { flightMs, useStoreScene } from "../support/store-scene.ts";

// Writes for subscribers that were read earlier; store.test.ts has the rest.
describe("createDeliveryStore, insert for known subscribers", () => {
  const scene = useStoreScene();
  let event: EventModel;

  beforeEach(async () => {
    await agePool(scene.core.sql);
    event = await scene.work.addEvent();
  });

  const insert = (
    knownAt: KnownAt | undefined,
    store = scene.store,
    delivery = scene.newDelivery(event),
  ): ReturnType<DeliveryStore["insert"]> =>
    store.insert({
      events: [{ id: String(event.id), uuid: event.uuid, data: "{}" }],
      deliveries: [delivery],
      isComplete: true,
      flightMs,
      knownAt,
    });
  const isStale = async (knownAt: KnownAt): Promise<boolean> => (await insert(knownAt)).isStale;
  const change = (): Promise<unknown> => scene.core.sql("UPDATE svc.subscriptions SET url = url");

  async function during(work: (client: PoolClient) => Promise<unknown>): Promise<void> {
    const client = await scene.core.database.pool.connect();
    try {
      await client.query("BEGIN");
      await work(client);
    } finally {
      await client.query("ROLLBACK");
      client.release();
    }
  }

  it("writes when nothing has changed since, and reports it", async () => {
    await change();
    const { isStale: isOld, ids, eventCount } = await insert(await knownNow(scene.core.sql));

    expect([isOld, ids.size, eventCount]).to.deep.equal([false, 1, 1]);
    expect(await scene.work.outbox()).to.deep.equal([]);
    expect(await scene.work.deliveries()).to.have.length(1);
  });

  it("writes nothing after a change, and everything after a new look-up", async () => {
    const knownAt = await knownNow(scene.core.sql);
    await change();
    const state = async (): Promise<unknown> => [
      await scene.work.outbox(),
      await scene.core.sql("SELECT * FROM svc.deliveries"),
      await scene.core.sql("SELECT * FROM svc.event_data"),
      await scene.core.sql("SELECT * FROM svc.flights"),
      await scene.core.sql("SELECT * FROM svc.delivery_queue"),
      await scene.core.sql("SELECT last_value, is_called FROM svc.deliveries_id_seq"),
    ];
    const before = await state();

    for (const isTaken of [true, false, null]) {
      const answer = await insert(knownAt, scene.store, scene.newDelivery(event, { isTaken }));
      expect([answer.isStale, answer.ids.size, answer.eventCount, answer.flightId]).to.deep.equal([
        true,
        0,
        0,
        undefined,
      ]);
    }

    expect(await state()).to.deep.equal(before);
    const answer = await insert(undefined);
    expect([answer.isStale, answer.ids.size]).to.deep.equal([false, 1]);
  });

  for (const [what, text] of [
    ["an insert", "INSERT INTO svc.users (name, email) VALUES ('New', 'new@example.com')"],
    ["an update", "UPDATE svc.users SET is_admin = true"],
    ["a delete", "DELETE FROM svc.users"],
    ["a truncation", "TRUNCATE svc.users CASCADE"],
    ["a truncation of subscriptions", "TRUNCATE svc.subscriptions"],
    ["a change within another statement", "WITH gone AS (DELETE FROM svc.subscriptions) SELECT 1"],
  ] as const)
    it(`sees ${what}`, async () => {
      const knownAt = await knownNow(scene.core.sql);
      await scene.core.sql(text);

      expect(await isStale(knownAt)).to.equal(true);
    });

  it("sees a change by a role without rights on the table of changes", async () => {
    const knownAt = await knownNow(scene.core.sql);
    await during(async (client) => {
      await client.query(`CREATE ROLE svc_test_changer; GRANT USAGE ON SCHEMA svc TO svc_test_changer;
        GRANT SELECT, UPDATE ON svc.users TO svc_test_changer`);
      await client.query("SET LOCAL ROLE svc_test_changer; UPDATE svc.users SET name = 'B'; RESET ROLE");
      await client.query("DROP OWNED BY svc_test_changer; DROP ROLE svc_test_changer; COMMIT");
    });

    expect(await isStale(knownAt)).to.equal(true);
  });

  it("sees a change that was not committed at the look-up, and that began before others", async () => {
    let knownAt: KnownAt | undefined;
    await during(async (client) => {
      await client.query("SAVEPOINT a");
      await client.query("UPDATE svc.subscriptions SET url = url");
      await client.query("RELEASE a");
      await scene.work.addUser();
      knownAt = await knownNow(scene.core.sql);
      await client.query("COMMIT");
    });

    expect(await isStale(knownAt as KnownAt)).to.equal(true);
  });

  it("does not wait for an uncommitted change, and does not count it", async () => {
    const knownAt = await knownNow(scene.core.sql);
    await during(async (client) => {
      await client.query("UPDATE svc.subscriptions SET url = url");

      expect(await isStale(knownAt)).to.equal(false);
    });
  });

  it("counts no change that was rolled back, and no statement that changes no row", async () => {
    const knownAt = await knownNow(scene.core.sql);
    await during((client) => client.query("UPDATE svc.subscriptions SET url = url"));
    await scene.core.sql("UPDATE svc.subscriptions SET url = url WHERE id < 0");
    await scene.core.sql("DELETE FROM svc.users WHERE id < 0");
    await scene.core.sql("SELECT FROM svc.users FOR UPDATE");

    expect(await isStale(knownAt)).to.equal(false);
  });

  it("lets two transactions change subscriptions at one time, and one transaction change them twice", async () => {
    const other = await scene.work.addSubscription();
    await during(async (client) => {
      await client.query("UPDATE svc.subscriptions SET url = url WHERE id = $1", [other.id]);
      await client.query("UPDATE svc.subscriptions SET url = url WHERE id = $1", [other.id]);

      await scene.core.sql(
        "WITH a AS (SELECT set_config('lock_timeout', '2000', true)) UPDATE svc.subscriptions SET url = url FROM a WHERE id = $1",
        [scene.subscription.id],
      );
    });
  });

  it("ignores the transaction ids of another database, from a dump", async () => {
    const knownAt = await knownNow(scene.core.sql);
    const [row] = await scene.core.sql<{ next: string }>(
      "SELECT (pg_snapshot_xmax(pg_current_snapshot())::text::bigint + 1000)::text AS next",
    );
    await scene.core.sql(
      "INSERT INTO svc.subscription_changes SELECT $1::bigint + n FROM generate_series(1, 10) AS n",
      [row?.next],
    );

    expect(await isStale(knownAt)).to.equal(false);
    await scene.core.sql("TRUNCATE svc.subscription_changes");
  });

  it("uses no answer that is more than 5 s old: a change since may be pruned", async () => {
    const { snapshot, readAtMs } = await knownNow(scene.core.sql);

    expect(await isStale({ snapshot, readAtMs: readAtMs - 5_001 })).to.equal(true);
    expect(await isStale({ snapshot, readAtMs: readAtMs - 2_000 })).to.equal(false);
  });

  it("uses only answers that are younger than the session, because of crashes", async () => {
    const fresh = await openDatabase({ url: scene.core.url, poolSize: 1, isEmbedded: false });
    try {
      const sql = createSql({ pool: fresh.pool, isEmbedded: false });
      const store = createDeliveryStore({ sql });
      const knownAt = await knownNow(scene.core.sql);

      expect((await insert(knownAt, store)).isStale).to.equal(true);
      expect((await insert(knownAt, store)).isStale).to.equal(true);
      expect((await insert(await knownNow(scene.core.sql), store)).isStale).to.equal(false);
    } finally {
      await fresh.close();
    }
  });

  it("uses an answer although the clock was set back to before the session's start", async () => {
    const fresh = await openDatabase({ url: scene.core.url, poolSize: 1, isEmbedded: false });
    try {
      const sql = createSql({ pool: fresh.pool, isEmbedded: false });
      await sql("SELECT set_config('svc.session_since', '9e15', false)");

      const { isStale: isOld } = await insert(await knownNow(scene.core.sql), createDeliveryStore({ sql }));

      expect(isOld).to.equal(false);
    } finally {
      await fresh.close();
    }
  });
});
