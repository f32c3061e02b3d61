import { setTimeout as sleep } from "node:timers/promises";
import { matches } from "../../test/support/ledger.ts";
import { until } from "../../test/support/wait.ts";
import { type Arrival, closeLedger, type Facts, isReceived, type Ledger } from "./ledger.ts";
import type { Load } from "./load.ts";
import type { System } from "./system.ts";

/** The deliveries that receivers got so far, and those that are still due. */
interface Books {
  readonly arrivals: readonly Arrival[];
  /** Fetches the arrivals since the last call. */
  update(): Promise<void>;
  /**
   * Waits until all changes that were committed before the call have arrived, except permanent
   * failures. Rejects after `limitMs`.
   */
  untilArrived(limitMs: number): Promise<void>;
  /**
   * Waits until each due pair has arrived or is explained and no delivery is under way, and closes
   * the books. No change may follow.
   *
   * @returns Also the duration; undefined when the wait exceeded `limitMs`.
   */
  close(
    load: Load,
    limitMs: number,
  ): Promise<{
    readonly ledger: Ledger;
    readonly drainedAfterMs: number | undefined;
    /** UUIDs of the deliveries that replays made. */
    readonly replayed: ReadonlySet<string>;
  }>;
}

export function openBooks(system: System): Books {
  const { pool, audiences, receivers } = system;
  const arrivals: Arrival[] = [];
  /** Pairs of a subscription and a change. */
  const received = new Set<string>();

  async function update(): Promise<void> {
    for (const arrival of (await receivers.ask({ kind: "take" })).arrivals) {
      arrivals.push(arrival);
      if (isReceived(arrival)) received.add(`${arrival.path} ${arrival.change}`);
    }
  }

  return {
    arrivals,
    update,
    async untilArrived(limitMs) {
      const lasting = audiences.filter(({ path }) => path !== "/broken");
      let missing = (await readJournal(pool)).flatMap(({ change, ownerId }) =>
        lasting.filter((one) => matches(one, change, ownerId)).map(({ path }) => `${path} ${change}`),
      );
      const isDone = async (): Promise<boolean> => {
        await sleep(200);
        await update();
        const givenUp = await readGivenUp(system);
        missing = missing.filter((pair) => !received.has(pair) && !givenUp.has(pair));
        return missing.length === 0;
      };
      await until(isDone, { what: "all to arrive that was committed", timeoutMs: limitMs });
    },
    async close(load, limitMs) {
      const startedAt = performance.now();
      for (;;) {
        const isQuiet = (await countOpen(pool)) === 0;
        const drainedAfterMs = performance.now() - startedAt;
        const isOver = drainedAfterMs > limitMs;
        if (isQuiet || isOver) {
          // Waits for receivers that still answer, and for late duplicates.
          await sleep(1_000);
          await update();
          const facts = await readFacts(system);
          const ledger = closeLedger({ ...facts, tried: load.tried(), arrivals });
          const isDrained = isQuiet && ledger.lost.length === 0;
          const replayed = new Set(
            facts.deliveries.filter(({ replayId }) => replayId !== null).map(({ uuid }) => uuid),
          );
          if (isDrained || isOver)
            return { ledger, drainedAfterMs: isDrained ? drainedAfterMs : undefined, replayed };
        }
        await sleep(500);
      }
    },
  };
}

type Pool = System["pool"];

async function countOpen(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ readonly open: number }>(
    `SELECT (SELECT count(*) FROM svc.deliveries WHERE status NOT IN ('delivered', 'failed', 'cancelled'))::int
      + (SELECT count(*) FROM svc.replays WHERE state IN ('running', 'paused'))::int AS open`,
  );
  return rows[0]?.open ?? Number.NaN;
}

async function readJournal(pool: Pool): Promise<Facts["journal"]> {
  const text = `SELECT change, owner_id AS "ownerId" FROM journal`;
  return (await pool.query<Facts["journal"][number]>(text)).rows;
}

/**
 * Returns the pairs of a subscription and a change that are erased or cancelled, and will not
 * arrive.
 */
async function readGivenUp({ pool, audiences }: System): Promise<ReadonlySet<string>> {
  const { rows } = await pool.query<{ readonly change: string; readonly subscriptionId: number | null }>(`
    SELECT noted.change, delivery.subscription_id AS "subscriptionId"
    FROM noted_events AS noted JOIN (
      SELECT event_uuid, subscription_id FROM svc.deliveries WHERE status = 'cancelled'
      UNION ALL SELECT uuid, NULL FROM noted_events WHERE is_erased
    ) AS delivery ON delivery.event_uuid = noted.uuid`);
  return new Set(
    rows.flatMap(({ change, subscriptionId }) =>
      audiences
        .filter((one) => subscriptionId === null || one.subscriptionId === subscriptionId)
        .map(({ path }) => `${path} ${change}`),
    ),
  );
}

async function readFacts({ pool, audiences }: System): Promise<Omit<Facts, "tried" | "arrivals">> {
  const events = await pool.query<Facts["events"][number]>(
    `SELECT uuid, change, is_erased AS "isErased" FROM noted_events`,
  );
  const columns = `uuid, event_uuid AS event, subscription_id AS "subscriptionId", status, last_error AS reason, replay_id AS "replayId"`;
  const deliveries = await pool.query<Facts["deliveries"][number]>(
    `SELECT ${columns}, false AS "isRemoved" FROM svc.deliveries
     UNION ALL SELECT ${columns}, true FROM removed_deliveries`,
  );
  const replays = await pool.query<Facts["replays"][number]>(
    "SELECT id, state, reason, done::float8 AS done, failed::float8 AS failed FROM svc.replays",
  );
  return {
    journal: await readJournal(pool),
    audiences,
    events: events.rows,
    deliveries: deliveries.rows,
    replays: replays.rows,
  };
}
