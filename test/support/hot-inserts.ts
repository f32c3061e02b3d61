import { randomUUID } from "node:crypto";
import type { Sql } from "../../src/db/sql.ts";
import type { NewDelivery } from "../../src/deliveries/insert-deliveries.ts";
import { createDeliveryStore, type DeliveryStore } from "../../src/deliveries/store.ts";
import type { KnownAt } from "../../src/subscriptions/known-subscribers.ts";
import { pruneChangesText } from "../../src/subscriptions/prune-changes.ts";
import type { HotWork } from "./hot-work.ts";

interface Captured {
  readonly id: string;
  readonly uuid: string;
}

/** Each statement runs in its own transaction, which is rolled back, so no session is older. */
const believed = 1e15;

/** Writes the deliveries of events, and deletes rows of `svc.subscription_changes`. */
export function insertWorks(captured: readonly Captured[], { snapshot }: KnownAt): readonly HotWork[] {
  const known = { snapshot, readAtMs: believed };
  return [
    { name: "insert", pool: "dispatcher", mostRead: 1_200, run: (sql) => insert(sql, captured) },
    {
      name: "insert, for known subscribers",
      pool: "dispatcher",
      mostRead: 1_200,
      async run(sql) {
        const { isStale } = await insert(sql, captured, known);
        if (isStale) throw new Error("Nothing was written: the plan says nothing.");
      },
    },
    {
      name: "changes: prune",
      pool: "dispatcher",
      mostRead: 400,
      run: (sql) => sql(pruneChangesText, [snapshot, believed, 100]),
    },
  ];
}

function insert(
  sql: Sql,
  events: readonly Captured[],
  knownAt?: KnownAt,
): ReturnType<DeliveryStore["insert"]> {
  const deliveries = events.flatMap((event) =>
    [1, 2].map((subscriptionId): NewDelivery => ({
      uuid: randomUUID(),
      eventId: event.id,
      eventUuid: event.uuid,
      subscriptionId,
      userId: 1,
      resource: "orders",
      url: "http://127.0.0.1:9/",
      maxAttempts: 3,
      isTaken: subscriptionId === 1,
    })),
  );
  return createDeliveryStore({ sql }).insert({
    events: events.map(({ id, uuid }) => ({ id, uuid, data: "{}" })),
    deliveries,
    isComplete: true,
    flightMs: 60_000,
    knownAt,
  });
}
