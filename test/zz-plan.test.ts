import { openCoreDatabase } from "./support/core-database.ts";
import { createOutbox } from "../src/events/outbox.ts";
import { createDeliveryStore } from "../src/deliveries/store.ts";
import { createOutboxCursor } from "../src/events/outbox-cursor.ts";

describe("plans", function () {
  this.timeout(120_000);
  it("shows", async () => {
    const core = await openCoreDatabase();
    const client = await core.database.pool.connect();
    const texts: [string, readonly unknown[]][] = [];
    const sql: any = async (text: string, values: readonly unknown[] = []) => {
      texts.push([text, values]);
      return [];
    };
    await client.query(
      `INSERT INTO svc.events (resource, trigger, record_id, owner_id, snapshot) SELECT 'notes', 'on_create', n::text, '1', json_build_object('id', n) FROM generate_series(1, 5000) AS n`,
    );
    await client.query("DELETE FROM svc.outbox WHERE event_id < 4990");
    await client.query(
      `INSERT INTO svc.deliveries (uuid, root_delivery_id, event_id, event_uuid, subscription_id, user_id, resource, trigger_kind, url, max_attempts) SELECT gen_random_uuid(), n, n, gen_random_uuid(), 1, 1, 'notes', 'automatic', 'http://x', 3 FROM generate_series(1,5000) n`,
    );
    const outbox = createOutbox({ sql });
    const store = createDeliveryStore({ sql });
    await outbox
      .read({
        scans: createOutboxCursor(["notes"]).scans(["notes"]),
        share: { name: "x", others: [], index: 0 },
        known: [],
        limit: 200,
        maxBytes: 8e6,
      })
      .catch(() => 0);
    await store.record({
      outcomes: [
        {
          id: "77",
          uuid: (await client.query("SELECT uuid FROM svc.deliveries WHERE id = 77")).rows[0].uuid,
          status: "delivered",
          attemptsBefore: 0,
          result: { startedAt: new Date(), durationMs: 1, statusCode: 200, isResponseTruncated: false },
        },
      ],
      landed: ["5"],
    });
    await store.insert({
      events: [{ id: "4995", data: "{}" }],
      deliveries: [
        {
          uuid: "11111111-1111-4111-8111-111111111111",
          eventId: "4995",
          eventUuid: "11111111-1111-4111-8111-111111111111",
          subscriptionId: 2,
          userId: 1,
          resource: "notes",
          url: "http://x",
          maxAttempts: 3,
          isTaken: true,
        },
      ],
      isComplete: true,
      flightMs: 1000,
    });
    await client.query("SET plan_cache_mode = force_generic_plan");
    let n = 0;
    for (const [text, values] of texts) {
      n++;
      const lit = (v: unknown): string =>
        v === null || v === undefined
          ? "NULL"
          : Array.isArray(v)
            ? `ARRAY[${v.map(lit).join(",")}]`
            : v instanceof Date
              ? `'${v.toISOString()}'`
              : typeof v === "number" || typeof v === "bigint" || typeof v === "boolean"
                ? String(v)
                : `'${String(v)}'`;
      await client.query(`PREPARE p${n} AS ${text}`);
      const types = (
        await client.query(
          `SELECT parameter_types::text[] AS t FROM pg_prepared_statements WHERE name = 'p${n}'`,
        )
      ).rows[0].t as string[];
      const args = values.map((v, i) => `${lit(v)}::${types[i]}`).join(", ");
      const { rows } = await client.query(`EXPLAIN (ANALYZE, BUFFERS) EXECUTE p${n}(${args})`);
      console.log(rows.map((r) => r["QUERY PLAN"]).join("\n"));
      console.log("=======");
    }
    client.release();
    await core.close();
  });
});
