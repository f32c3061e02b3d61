import { setTimeout as sleep } from "node:timers/promises";
import type { Sql } from "../db/sql.ts";

/**
 * Returns the id up to which every event is there: no transaction that is still open can add one.
 * Events get their ids before they are committed. A reader that continues behind the largest id
 * seen would miss the events of a transaction that commits late.
 */
export type EventHorizon = () => Promise<bigint>;

/** All events up to `last` belong to transactions before `transaction`. */
interface Sample {
  readonly last: bigint;
  readonly transaction: bigint;
}

/**
 * Reads the sequence first, then takes a transaction id: the scan of the sequence comes before the
 * call. A capture trigger runs when its transaction has an id already. So the transactions of all
 * events up to `last` have smaller ids. `pg_snapshot_xmax` would not do: it may be the id of a
 * transaction that is at work.
 */
const sampleText = `SELECT (last_value - CASE WHEN is_called THEN 0 ELSE 1 END)::text AS last,
  pg_current_xact_id()::text AS transaction FROM svc.events_id_seq`;
const oldestText = `SELECT pg_snapshot_xmin(pg_current_snapshot())::text AS oldest`;

/** Most samples that wait for the transactions before them: a minute of them, at one a second. */
const mostSamples = 60;
/** How long the first answer waits for writers that were there before this process. */
const firstWait = { tries: 40, pauseMs: 25 };

/**
 * Creates the horizon of a process. Each call looks at the database after it was called, in two
 * statements; calls at one time share them.
 */
export function createEventHorizon({ sql }: { readonly sql: Sql }): EventHorizon {
  let samples: readonly Sample[] = [];
  let horizon: bigint | undefined;
  let [underway, following]: (Promise<bigint> | undefined)[] = [];

  async function look(): Promise<void> {
    const [sample] = await sql<{ last: string; transaction: string }>(sampleText);
    const [answer] = await sql<{ oldest: string }>(oldestText);
    if (sample === undefined || answer === undefined) throw new Error("The statement returned no row.");
    const taken: Sample = { last: BigInt(sample.last), transaction: BigInt(sample.transaction) };
    const oldest = BigInt(answer.oldest);
    // Another server took over, which does not have all events of the first.
    if (taken.last < (samples.at(-1)?.last ?? horizon ?? 0n)) [samples, horizon] = [[], undefined];
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

  function start(): Promise<bigint> {
    const reading = read().finally(() => {
      if (underway === reading) underway = undefined;
    });
    underway = reading;
    return reading;
  }

  return () => {
    // It has not begun. Beside it, another look could come second with what it read first.
    if (following !== undefined) return following;
    if (underway === undefined) return start();
    // The one under way may have read the sequence before this call.
    following = underway
      .catch(() => undefined)
      .then(() => {
        following = undefined;
        return start();
      });
    return following;
  };
}

/** Keeps the oldest, which is passed first, and every second of the others. */
function thinned(samples: readonly Sample[]): readonly Sample[] {
  return samples.length <= mostSamples ? samples : samples.filter((_, index) => index % 2 === 0);
}
