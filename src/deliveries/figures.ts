import { arraysOf, withoutDiskWait, type Sql } from "../db/sql.ts";
import { messageOf } from "../kit/errors.ts";
import { idOf } from "../kit/ids.ts";
import { pause, type Worker } from "../kit/worker.ts";
import type { Log } from "../telemetry/log.ts";

/**
 * Counts changes, deliveries and failures for `GET /stats`, in memory, and adds them to
 * `svc.figures` every few seconds. A process that dies loses its unwritten counts.
 */
export interface Figures extends Worker {
  /**
   * Counts events that were fanned out.
   *
   * @param ownerIds Owner of each event; null for an event without an owner.
   */
  changed(ownerIds: readonly (string | null)[]): void;
  /** Counts an attempt whose outcome is stored. */
  attempted(userId: number, isDelivered: boolean): void;
}

interface Counts {
  changes: number;
  deliveries: number;
  failures: number;
}

/** User id that stands for all users in `svc.figures`. */
export const allUsersId = 0;
/**
 * How long counts are kept: longer than `GET /stats` looks back, an hour by minutes and a week by
 * hours.
 */
const keptFor = { minute: "2 hours", hour: "8 days" } as const;

const writeEveryMs = 5_000;
const forgetEveryMs = 10 * 60_000;
/** Users of one statement. */
const mostAtOnce = 500;
/** Rows of one statement. */
const mostForgotten = 2_000;

/**
 * Adds counts to the current minute and hour of the database's clock. Locks rows in the order of
 * the key, so that two processes never deadlock. The commit does not wait for the disk: a crash of
 * the database loses as little as a crash of the process.
 */
const addText = `
  INSERT INTO svc.figures AS kept (user_id, width, since, changes, deliveries, failures)
  SELECT user_id, width, date_trunc(width, now(), 'UTC'), changes, deliveries, failures
  FROM unnest($1::int[], $2::int[], $3::int[], $4::int[]) AS given (user_id, changes, deliveries, failures)
    CROSS JOIN unnest(ARRAY['hour', 'minute']) AS width
  WHERE ${withoutDiskWait}
  ORDER BY user_id, width
  ON CONFLICT (user_id, width, since) DO UPDATE SET changes = kept.changes + excluded.changes,
    deliveries = kept.deliveries + excluded.deliveries, failures = kept.failures + excluded.failures`;

const forgetText = `
  DELETE FROM svc.figures WHERE ctid = ANY(ARRAY(
    SELECT ctid FROM svc.figures WHERE width = $1 AND since < now() - $2::interval
    ORDER BY since LIMIT ${mostForgotten} FOR UPDATE SKIP LOCKED))
  RETURNING 1`;

/**
 * Creates the counter of a process, without counts.
 *
 * @param drained Resolves when no attempt is in flight: an orderly stop writes the last counts too.
 */
export function createFigures({
  sql,
  log,
  drained,
  intervalMs = writeEveryMs,
}: {
  readonly sql: Sql;
  readonly log: Log;
  readonly drained: () => Promise<void>;
  readonly intervalMs?: number;
}): Figures {
  let pending = new Map<number, Counts>();

  function add(userId: number, name: keyof Counts, count = 1): void {
    const counts = pending.get(userId) ?? { changes: 0, deliveries: 0, failures: 0 };
    counts[name] += count;
    pending.set(userId, counts);
  }

  async function write(): Promise<void> {
    const taken = [...pending].toSorted(([one], [other]) => one - other);
    pending = new Map();
    for (let at = 0; at < taken.length; at += mostAtOnce) {
      const part = taken.slice(at, at + mostAtOnce).map(([userId, counts]) => ({ userId, ...counts }));
      try {
        await sql(addText, arraysOf(part, "userId", "changes", "deliveries", "failures"));
      } catch (error) {
        // Adds the unwritten counts to the next ones. The map has one entry per user, however long
        // the database is away.
        for (const [userId, counts] of taken.slice(at))
          for (const name of ["changes", "deliveries", "failures"] as const) add(userId, name, counts[name]);
        log.warn({ reason: messageOf(error) }, "figures not written; trying again");
        return;
      }
    }
  }

  return {
    name: "figures",
    changed(ownerIds) {
      if (ownerIds.length === 0) return;
      add(allUsersId, "changes", ownerIds.length);
      for (const userId of ownerIds.map(idOf)) if (userId !== undefined) add(userId, "changes");
    },
    attempted(userId, isDelivered) {
      const name = isDelivered ? "deliveries" : "failures";
      add(allUsersId, name);
      add(userId, name);
    },
    async run(signal) {
      let forgottenAtMs = Number.NEGATIVE_INFINITY;
      while (!signal.aborted) {
        await pause(intervalMs, signal);
        await write();
        if (performance.now() - forgottenAtMs < forgetEveryMs) continue;
        forgottenAtMs = performance.now();
        await forgetOld(sql).catch((error: unknown) =>
          log.warn({ reason: messageOf(error) }, "old figures not removed; trying again"),
        );
      }
      await drained();
      await write();
    },
  };
}

/** Deletes the counts that are no longer shown, a bounded number of rows at a time. */
export async function forgetOld(sql: Sql): Promise<void> {
  for (const [width, age] of Object.entries(keptFor)) {
    let count = mostForgotten;
    while (count === mostForgotten) count = (await sql(forgetText, [width, age])).length;
  }
}
