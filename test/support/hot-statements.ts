import type { Sql } from "../../src/db/sql.ts";
import { readDeliveryBacklog } from "../../src/deliveries/delivery-backlog.ts";
import { deliveryStatuses } from "../../src/deliveries/delivery.ts";
import type { DeliveryFilter } from "../../src/deliveries/history-texts.ts";
import { createDeliveryHistory } from "../../src/deliveries/history.ts";
import { pruneEvents } from "../../src/deliveries/prune.ts";
import { createDeliveryStore } from "../../src/deliveries/store.ts";
import { readOutboxBacklog } from "../../src/events/outbox-backlog.ts";
import { createOutboxCursor } from "../../src/events/outbox-cursor.ts";
import { createOutbox } from "../../src/events/outbox.ts";
import { readListParameters } from "../../src/querying/list-parameters.ts";
import { findSubscriptions, subscriptionShape } from "../../src/subscriptions/own-subscriptions.ts";
import { createSubscriptionStore } from "../../src/subscriptions/store.ts";
import { feedWorks } from "./hot-feed.ts";
import { figureWorks } from "./hot-figures.ts";
import { heldWorks } from "./hot-held.ts";
import { insertWorks } from "./hot-inserts.ts";
import type { HotWork } from "./hot-work.ts";
import { knownNow } from "./known-subscribers.ts";
import { inHand, parkedSubscription, subscriptions } from "./long-history.ts";

const flightMs = 60_000;
const [batch, lookThrough] = [100, 2_000];
/**
 * Number of events that the relay has in flight, and number that leave the outbox in two seconds at
 * full speed.
 */
const [mostUnderWay, mostGone] = [1_000, 4_000];

/** @param plain Runs look-ups outside of the measurement. */
export async function hotWorks(plain: Sql): Promise<readonly HotWork[]> {
  const found = async (text: string): Promise<readonly string[]> =>
    (await plain<{ id: string }>(text)).map(({ id }) => id);
  const backlog = await found(
    "SELECT event_id AS id FROM svc.outbox WHERE resource = 'orders' ORDER BY event_id LIMIT 200",
  );
  const underWay = await found(
    `SELECT event_id AS id FROM svc.outbox WHERE resource = 'orders' ORDER BY event_id LIMIT ${mostUnderWay}`,
  );
  const gone = Array.from({ length: mostGone }, (_, index) => String(10 ** 9 + index));
  const captured = await plain<{ id: string; uuid: string }>(
    "SELECT id, uuid FROM svc.events WHERE id = ANY($1::bigint[]) ORDER BY id",
    [backlog],
  );
  const recorded = await plain<{ eventId: string; eventUuid: string }>(
    `SELECT id AS "eventId", uuid AS "eventUuid" FROM svc.events WHERE id <= ${backlog.length}`,
  );
  const flying = await plain<{ id: string; uuid: string; flightId: string }>(
    `SELECT delivery.id, uuid, flights.id AS "flightId" FROM svc.flights CROSS JOIN unnest(delivery_ids) AS taken (delivery_id) JOIN svc.deliveries AS delivery ON delivery.id = delivery_id
      ORDER BY delivery.id LIMIT ${batch}`,
  );
  const flights = await found("SELECT id FROM svc.flights ORDER BY id LIMIT 5");
  const [event = "0"] = await found(
    "SELECT id FROM svc.events WHERE resource = 'notes' ORDER BY id OFFSET 1000 LIMIT 1",
  );
  const [failed = "0"] = await found(
    "SELECT id FROM svc.deliveries WHERE problem = 'failed' ORDER BY id DESC LIMIT 1",
  );

  const writing: readonly HotWork[] = [
    { name: "outbox: read", pool: "relay", mostRead: 3_300, run: readOutbox },
    { name: "outbox: find", pool: "relay", mostRead: 400, run: (sql) => createOutbox({ sql }).find(backlog) },
    {
      name: "outbox: waiting",
      pool: "relay",
      mostRead: mostUnderWay,
      run: (sql) => createOutbox({ sql }).waiting([...underWay, ...gone]),
    },
    {
      name: "outbox: resources",
      pool: "relay",
      mostRead: 5,
      run: (sql) => createOutbox({ sql }).resources(),
    },
    { name: "outbox: backlog", pool: "pool", mostRead: 10_010, isByIndex: true, run: readOutboxBacklog },
    ...insertWorks(captured, await knownNow(plain)),
    {
      name: "takeDue",
      pool: "dispatcher",
      mostRead: 8 * batch,
      run: (sql) => createDeliveryStore({ sql }).takeDue({ limit: batch, flightMs, sinceMs: undefined }),
    },
    {
      name: "takeDue, of late",
      pool: "dispatcher",
      mostRead: 8 * batch,
      run: (sql) => createDeliveryStore({ sql }).takeDue({ limit: batch, flightMs, sinceMs: 10_000 }),
    },
    {
      name: "findParked",
      pool: "pool",
      mostRead: 4 * batch + subscriptions,
      run: (sql) => createDeliveryStore({ sql }).findParked({ after: 0, limit: batch }),
    },
    {
      name: "takeParked, of one",
      pool: "dispatcher",
      mostRead: 8 * batch,
      run: (sql) =>
        createDeliveryStore({ sql }).takeParked({
          wanted: [{ subscriptionId: parkedSubscription, oldest: batch / 2, newest: batch / 2 }],
          flightMs,
        }),
    },
    {
      name: "takeParked, of many",
      pool: "dispatcher",
      mostRead: 8 * batch,
      run: (sql) =>
        createDeliveryStore({ sql }).takeParked({
          wanted: Array.from({ length: batch / 2 }, (_, index) => ({
            subscriptionId: index + 3,
            oldest: 1,
            newest: 1,
          })),
          flightMs,
        }),
    },
    ...heldWorks(batch),
    {
      name: "dataOf",
      pool: "pool",
      mostRead: 4 * batch,
      run: (sql) => createDeliveryStore({ sql }).dataOf(recorded),
    },
    {
      name: "record",
      pool: "dispatcher",
      mostRead: 3 * batch,
      run: (sql) =>
        createDeliveryStore({ sql }).record({
          outcomes: flying.map(({ id, uuid }, index) => ({
            id,
            uuid,
            status: index % 2 === 0 ? "delivered" : "retrying",
            ...(index % 2 === 0 ? {} : { lastError: "refused" }),
            attemptsBefore: 0,
            delayMs: 5_000,
            result: { startedAt: new Date(), durationMs: 1, statusCode: 200, isResponseTruncated: false },
          })),
          endedFlights: flights,
        }),
    },
    {
      name: "putBack",
      pool: "dispatcher",
      mostRead: 3 * batch,
      run: (sql) =>
        createDeliveryStore({ sql }).putBack({
          returns: flying.map(({ id, flightId }) => ({ id, flightId, delayMs: undefined })),
          endedFlights: flights,
        }),
    },
    {
      name: "renewFlight",
      pool: "dispatcher",
      mostRead: 1,
      run: (sql) => createDeliveryStore({ sql }).renewFlight({ id: flights[0] ?? "", flightMs: 60_000 }),
    },
    {
      name: "endOverdueFlights",
      pool: "dispatcher",
      mostRead: 3 * inHand,
      run: (sql) => createDeliveryStore({ sql }).endOverdueFlights({ limit: batch, flightMs: 60_000 }),
    },
    {
      name: "returnFar",
      pool: "dispatcher",
      mostRead: 1,
      run: (sql) => createDeliveryStore({ sql }).returnFar({ longestWaitMs: 86_400_000, limit: batch }),
    },
    {
      name: "nextDueInMs",
      pool: "pool",
      mostRead: 1,
      run: (sql) => createDeliveryStore({ sql }).nextDueInMs(),
    },
    {
      name: "cancelOrphans",
      pool: "pool",
      mostRead: 5 * batch + 2 * inHand,
      run: (sql) =>
        createDeliveryStore({ sql }).cancelOrphans({ subscriptionId: parkedSubscription, limit: batch }),
    },
    {
      name: "findOrphaned",
      pool: "pool",
      mostRead: 3 * batch,
      run: (sql) => createDeliveryStore({ sql }).findOrphaned({ after: 0, limit: batch }),
    },
    {
      name: "findUndeadLettered",
      pool: "pool",
      mostRead: 80,
      run: (sql) =>
        createDeliveryStore({ sql }).findUndeadLettered({ after: "0", limit: 20, olderThanMs: 60_000 }),
    },
    {
      name: "markDeadLettered",
      pool: "pool",
      mostRead: 20,
      run: (sql) => createDeliveryStore({ sql }).markDeadLettered([failed]),
    },
    {
      name: "deliveries: backlog",
      pool: "pool",
      mostRead: 45_000,
      isByIndex: true,
      run: readDeliveryBacklog,
    },
    ...figureWorks,
    { name: "subscription: delete", pool: "pool", mostRead: 5_500, run: deleteSubscription },
    { name: "prune, a page", pool: "pool", mostRead: 9_000, run: (sql) => prune(sql, false) },
    { name: "prune --plan, a page", pool: "pool", mostRead: 4_000, run: (sql) => prune(sql, true) },
    {
      name: "delivery: retry",
      pool: "pool",
      mostRead: 10,
      run: (sql) =>
        createDeliveryHistory({ sql, listSql: sql, transact: (work) => work(sql) }).retry({
          id: failed,
          limit: 5,
        }),
    },
    {
      name: "delivery: show",
      pool: "pool",
      mostRead: 2,
      run: async (sql) => {
        const history = createDeliveryHistory({ sql, listSql: sql, transact: (work) => work(sql) });
        await history.find(failed);
        await history.attemptsOf(failed);
      },
    },
  ];

  const scopes: readonly (readonly [string, DeliveryFilter])[] = [
    ["all", {}],
    ["user with most", { userId: 1 }],
    ["user", { userId: 50 }],
    ["webhook with most", { subscriptionId: 1 }],
    ["webhook", { subscriptionId: 300 }],
    ["own webhook", { userId: 1, subscriptionId: 1 }],
    ["somebody else's webhook", { userId: 2, subscriptionId: 1 }],
    ["event", { eventId: event }],
    ["user, event", { userId: 1, eventId: event }],
    ["webhook, event", { subscriptionId: 1, eventId: event }],
  ];
  const lists = scopes.flatMap(([scope, filter]) =>
    [undefined, ...deliveryStatuses].map((status): HotWork => {
      const name = `list: ${[scope, status ?? []].flat().join(", ")}`;
      // A count reads 10,001 rows. Waiting deliveries are looked up in the history, and those in
      // flight once more. The status "delivered" is in no index, so other rows precede the matches.
      const isBehind = scope === "all" && status === "delivered";
      return {
        name,
        pool: "lists",
        isByIndex: true,
        mostRead: (isBehind ? 32 : 2) * 10_001 + inHand + 60,
        run: (sql) => list(sql, { ...filter, statuses: status && [status] }),
      };
    }),
  );
  // An event in the middle of the history, with finished deliveries before and after it.
  const middle = String((Number((await found("SELECT max(event_id) AS id FROM svc.deliveries"))[0]) / 2) | 0);
  const bounds = [
    ["desc", { toId: middle }],
    ["asc", { fromId: middle }],
    ["desc", { fromId: middle, toId: String(Number(middle) + 10) }],
    ["asc", { fromId: middle, toId: String(Number(middle) + 10) }],
  ] as const;
  const byCursor = scopes.flatMap(([scope, filter]) =>
    [undefined, ...deliveryStatuses].flatMap((status) =>
      bounds.map(([order, bound]): HotWork => ({
        name: `cursor: ${[scope, status ?? [], order, Object.keys(bound)].flat().join(", ")}`,
        pool: "lists",
        isByIndex: true,
        // Includes deliveries in flight. For one user and one webhook, pending and retrying ones
        // are read together.
        mostRead: 200 + 2 * inHand + (scope === "all" ? 0 : 1_000),
        run: (sql) =>
          createDeliveryHistory({ sql, listSql: sql, transact: (work) => work(sql) }).read({
            filter: { ...filter, ...bound, statuses: status && [status] },
            order,
            skip: 0,
            take: 16,
          }),
      })),
    ),
  );
  const narrowed = (
    [
      [{ resource: "notes" }, 3],
      [{ event: "on_delete" }, 4],
      [{ recordId: "7", createdAfter: new Date(0) }, 4],
      [{ url: "http://127.0.0.1:8/" }, 3],
      [{ createdAfter: new Date(), createdBefore: new Date() }, 3],
    ] as const
  ).flatMap(([narrowing, perDelivery]) =>
    scopes.slice(0, 6).map(([scope, filter]): HotWork => ({
      name: `list: ${scope}, ${Object.keys(narrowing).join(" and ")}`,
      pool: "lists",
      isByIndex: true,
      mostRead: perDelivery * lookThrough + 200,
      run: (sql) =>
        createDeliveryHistory({ sql, listSql: sql, transact: (work) => work(sql), lookThrough }).list({
          filter: { ...filter, narrowing },
          skip: 0,
          take: 15,
        }),
    })),
  );
  const several: HotWork = {
    name: "list: several statuses",
    pool: "lists",
    isByIndex: true,
    mostRead: 4 * 10_001 + 2 * inHand + 200,
    run: (sql) => list(sql, { userId: 1, statuses: ["pending", "failed", "cancelled"] }),
  };
  return [...writing, ...lists, ...byCursor, ...narrowed, several, webhooks, ...feedWorks];
}

const webhooks: HotWork = {
  name: "webhooks: filtered and sorted",
  pool: "lists",
  isByIndex: true,
  mostRead: 12,
  run(sql) {
    const query = "filter[url][contains]=1&filter[not][description]=a&sort=-url,description";
    const { filter, sort } = readListParameters(query, subscriptionShape, { maxPerPage: 15 });
    return findSubscriptions(sql, 50, { filter, sort, limit: 10_001 });
  },
};

async function list(sql: Sql, filter: DeliveryFilter): Promise<void> {
  const history = createDeliveryHistory({ sql, listSql: sql, transact: (work) => work(sql) });
  await history.list({ filter, skip: 0, take: 15 });
}

async function readOutbox(sql: Sql): Promise<void> {
  const resources = ["orders", "notes"];
  const outbox = createOutbox({ sql });
  const cursor = createOutboxCursor(resources);
  // The first read treats all events as new; later reads also take those left over.
  for (let turn = 0; turn < 3; turn += 1) {
    const share = { name: "svc bench", pool: "pool", others: [] };
    const scans = cursor.scans(resources);
    const { snapshot, scanned } = await outbox.read({
      scans,
      share,
      known: [],
      limit: 200,
      maxBytes: 4_000_000,
    });
    cursor.advance(snapshot, scanned);
  }
}

function deleteSubscription(sql: Sql): Promise<unknown> {
  const secretBox = { encrypt: () => Buffer.alloc(0), decrypt: () => "" };
  const store = createSubscriptionStore({
    sql,
    transact: (work) => work(sql),
    maxPerUser: 50,
    secretBox,
  });
  return store.delete(parkedSubscription, 2 + parkedSubscription, { kind: "service", source: undefined });
}

const enough = new Error("enough pages");

async function prune(sql: Sql, isPlan: boolean): Promise<void> {
  let pages = 0;
  const onProgress = (): void => {
    if ((pages += 1) === 3) throw enough;
  };
  await pruneEvents({ transact: (work) => work(sql), olderThanMs: 7 * 86_400_000, isPlan, onProgress }).catch(
    (error: unknown) => {
      if (error !== enough) throw error;
    },
  );
}
