import type { Sql } from "../db/sql.ts";
import { countLimit, type DeliveryBacklog } from "../metrics/backlog.ts";

const waiting = "status IN ('pending', 'retrying')";

// Told apart by the time of the next attempt and not by status: each part is then a range of `deliveries_due_idx`, which holds
// only what is not at its end, and no part reads more than the limit. The orders keep the planner on the index: see the outbox's.
// Of the due, those in hand are few: as many as there are slots.
const backlogText = `
  SELECT
    (SELECT count(*) FROM (
      SELECT FROM svc.deliveries WHERE ${waiting} AND next_attempt_at <= now() ORDER BY next_attempt_at LIMIT $1) AS counted)::int AS due,
    (SELECT count(*) FROM (
      SELECT FROM svc.deliveries WHERE ${waiting} AND next_attempt_at > now() ORDER BY next_attempt_at LIMIT $1) AS counted)::int AS scheduled,
    (SELECT count(*) FROM (
      SELECT FROM svc.deliveries WHERE ${waiting} AND next_attempt_at IS NULL ORDER BY next_attempt_at LIMIT $1) AS counted)::int AS held,
    (SELECT extract(epoch FROM now() - next_attempt_at) * 1000 FROM svc.deliveries
      WHERE ${waiting} AND next_attempt_at <= now() AND (leased_until IS NULL OR leased_until < now())
      ORDER BY next_attempt_at LIMIT 1)::float8 AS "oldestDueMs",
    (SELECT count(*) FROM (
      SELECT FROM svc.deliveries WHERE status = 'failed' AND dead_lettered_at IS NULL ORDER BY id LIMIT $1) AS counted)::int AS "awaitingDeadLetter"`;

/** The deliveries that are not at their end. The cost is bounded, however many there are. */
export async function readDeliveryBacklog(sql: Sql): Promise<DeliveryBacklog> {
  const [row] = await sql<Found>(backlogText, [countLimit]);
  if (row === undefined) throw new Error("no answer");
  return { ...row, oldestDueMs: row.oldestDueMs ?? undefined };
}

type Found = Omit<DeliveryBacklog, "oldestDueMs"> & { readonly oldestDueMs: number | null };
