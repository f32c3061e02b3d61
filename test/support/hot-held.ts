import { randomUUID } from "node:crypto";
import { createHeldStore } from "../../src/deliveries/held-store.ts";
import type { HotWork } from "./hot-work.ts";
import { parkedSubscription } from "./long-history.ts";

const holdForMs = 60_000;

/** Statements on held deliveries, of which one subscription has many. */
export function heldWorks(batch: number): readonly HotWork[] {
  return [
    {
      name: "held: find",
      pool: "dispatcher",
      mostRead: 15 * batch,
      run: (sql) => createHeldStore({ sql, indexSql: sql }).find({ after: 0, limit: batch, holdForMs }),
    },
    ...(
      [
        ["many", parkedSubscription],
        ["few", 300],
        ["none, before one with many", parkedSubscription - 1],
      ] as const
    ).map(([what, subscriptionId]): HotWork => ({
      name: `held: take, of ${what}`,
      pool: "dispatcher",
      mostRead: 50,
      run: (sql) =>
        createHeldStore({ sql, indexSql: sql }).takeOldest({
          subscriptionId,
          holder: randomUUID(),
          flightMs: 60_000,
          limit: 10,
        }),
    })),
    {
      name: "held: forget discards",
      pool: "dispatcher",
      mostRead: 50,
      async run(sql) {
        await sql(
          `INSERT INTO svc.discards (subscription_id, up_to, asked_at) VALUES ($1, 10000000, now() - interval '1 minute')
            ON CONFLICT (subscription_id) DO UPDATE SET asked_at = EXCLUDED.asked_at`,
          [parkedSubscription],
        );
        await createHeldStore({ sql, indexSql: sql }).forgetDiscards();
      },
    },
    {
      name: "held: cancel",
      pool: "dispatcher",
      mostRead: 3 * batch,
      isByIndex: true,
      run: (sql) =>
        createHeldStore({ sql, indexSql: sql }).cancel({
          subscriptionId: parkedSubscription,
          upTo: undefined,
          reason: "The owner dropped what was held.",
          limit: batch,
        }),
    },
  ];
}
