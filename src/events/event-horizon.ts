import { setTimeout as sleep } from "node:timers/promises";
import { getRow, type Sql } from "../db/sql.ts";
import { createBatcher } from "../kit/batcher.ts";

/**
 * Returns the id up to which all events are visible: no open transaction can add an event below it.
 * Events get their ids before they are committed. A reader that continues behind the largest id
 * seen would miss the events of a transaction that commits late.
 */
export interface EventHorizon {
  (): Promise<bigint>;
  /**
   * Returns the id after which a reader without interest in earlier events begins: the horizon. It
   * is not known while a transaction from before this process is open. The reader then begins after
   * the first id that this process saw. It gets some earlier events, and can miss only events that
   * the old transactions wrote before that id.
   */
  start(): Promise<bigint>;
  /** Returns the largest id of all events, including those of open transactions. */
  latest(): Promise<bigint>;
}

/**
 * A sample of the sequence. All events up to `last` belong to transactions before `transaction`.
 */
interface Sample {
  readonly last: bigint;
  readonly transaction: bigint;
}

/**
 * Reads the sequence first and then takes a transaction id, because the scan of the sequence comes
 * before the call. A capture trigger runs when its transaction already has an id. Therefore the
 * transactions of all events up to `last` have smaller ids. `pg_snapshot_xmax` would be wrong,
 * because it may be the id of a running transaction.
 */
const sampleText = `SELECT (last_value - CASE WHEN is_called THEN 0 ELSE 1 END)::text AS last,
  pg_current_xact_id()::text AS transaction FROM svc.events_id_seq`;
const oldestText = `SELECT pg_snapshot_xmin(pg_current_snapshot())::text AS oldest`;

/** Most samples that wait for earlier transactions: one minute at one sample a second. */
const mostSamples = 60;
/** How long the first answer waits for transactions that began before this process. */
const firstWait = { tries: 40, pauseMs: 25 };

/**
 * Creates the horizon of a process. Each call reads the database after the call, in two statements.
 * Simultaneous calls share them.
 */
export function createEventHorizon({ sql }: { readonly sql: Sql }): EventHorizon {
  let samples: readonly Sample[] = [];
  let horizon: bigint | undefined;

  /** Returns the largest id of the last look. */
  const seen = (): bigint => samples.at(-1)?.last ?? horizon ?? 0n;

  async function look(): Promise<void> {
    const sample = await getRow<{ last: string; transaction: string }>(sql, sampleText);
    const oldest = BigInt((await getRow<{ oldest: string }>(sql, oldestText)).oldest);
    const taken: Sample = { last: BigInt(sample.last), transaction: BigInt(sample.transaction) };
    // Another server has taken over, without all events of the former one.
    if (taken.last < seen()) [samples, horizon] = [[], undefined];
    const passed = [...samples, taken].filter(({ transaction }) => transaction <= oldest);
    horizon = passed.at(-1)?.last ?? horizon;
    samples = thinned([...samples, taken].filter(({ transaction }) => transaction > oldest));
  }

  async function read(): Promise<bigint> {
    for (let tried = 1; ; tried += 1) {
      await look();
      if (horizon !== undefined || tried === firstWait.tries) return horizon ?? 0n;
      await sleep(firstWait.pauseMs);
    }
  }

  // Calls share a read that has not begun. A parallel read could finish later with older values.
  const calls = createBatcher<undefined, bigint>({
    maxItems: Infinity,
    async handle(batch) {
      const reached = await read();
      return batch.map(() => reached);
    },
  });
  const reach = (): Promise<bigint> => calls.add(undefined);
  return Object.assign(reach, {
    async start() {
      const reached = await reach();
      return horizon ?? samples[0]?.last ?? reached;
    },
    async latest() {
      await reach();
      return seen();
    },
  });
}

/** Keeps the oldest sample, which is passed first, and every second of the others. */
function thinned(samples: readonly Sample[]): readonly Sample[] {
  return samples.length <= mostSamples ? samples : samples.filter((_, index) => index % 2 === 0);
}
