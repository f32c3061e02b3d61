import type { Pool } from "pg";
import type { Broker } from "../broker/broker.ts";
import { queues } from "../broker/topology.ts";
import type { Database } from "../db/client.ts";
import { createIndexSql } from "../db/sql.ts";
import { readDeliveryBacklog } from "../deliveries/delivery-backlog.ts";
import { readOutboxBacklog } from "../events/outbox-backlog.ts";
import type { Metrics } from "../telemetry/metrics.ts";

/**
 * Adds the numbers that a scrape fetches: the backlogs of the database and of the queues. Every
 * program shows all of them, so that a backlog is visible while its own program is down.
 */
export function addScrapeSources(
  metrics: Metrics,
  { pool, lists, relay, dispatcher }: Database,
  broker: Broker,
): void {
  const sql = createIndexSql(pool);
  metrics.addSource({
    name: "database",
    async read() {
      // Reads one after the other, so that a scrape takes one connection.
      const outbox = await readOutboxBacklog(sql);
      metrics.backlog.show({ ...outbox, ...(await readDeliveryBacklog(sql)) });
    },
    forget: () => metrics.backlog.forget(),
  });
  metrics.addSource({
    name: "broker",
    async read() {
      const names = Object.values(queues);
      const depths = await Promise.all(names.map((name) => broker.depth(name)));
      names.forEach((name, index) => metrics.broker.showDepth(name, depths[index] ?? 0));
    },
    forget: () => metrics.broker.forget(),
  });
  metrics.broker.watch(() => broker.isConnected());
  const sized = new Set([pool, lists]);
  const all = new Set([pool, lists, relay, dispatcher]);
  const sumOf = (read: (one: Pool) => number, pools = all): number =>
    [...pools].reduce((sum, one) => sum + read(one), 0);
  metrics.addPool(() => ({
    active: sumOf((one) => one.totalCount - one.idleCount),
    idle: sumOf((one) => one.idleCount),
    // Counts the sized pools only: the number of the others is fixed, so more connections would not
    // help them.
    waiting: sumOf((one) => one.waitingCount, sized),
    limit: sumOf((one) => one.options.max),
  }));
}
