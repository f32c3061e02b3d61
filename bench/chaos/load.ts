import { changesPerRound, startWriters, type TriedChange, type Writers } from "../../test/support/writers.ts";
import { prefix, type System } from "./system.ts";

/** The writers, as named in the texts of their records. */
export const sources = ["ada", "eve", "sql"] as const;

export interface Load {
  readonly tried: () => readonly TriedChange[];
  acknowledged(): number;
  /** Returns answers of the API that no fault explains. */
  unexpected(): readonly string[];
  /** Returns the number of answers of the API by status. */
  statuses(): Readonly<Record<string, number>>;
  /** Rejects when a request has no answer within a minute. */
  stop(): Promise<void>;
}

const writersEach = 2;
const stopLimitMs = 60_000;

/**
 * Writes through both processes of the API, and directly by SQL. One of four SQL transactions is
 * rolled back.
 *
 * @param ratePerSecond Most changes a second: a writer waits for its answer.
 */
export function startLoad({ apis, writers, ownerIds, postgres }: System, ratePerSecond: number): Load {
  const perRound = writersEach * (2 * changesPerRound.api + changesPerRound.sql);
  const shared = {
    databaseUrl: postgres.url,
    ownerIds,
    breatherMs: Math.round((perRound / ratePerSecond) * 1_000),
  };
  const ofApi = writers.map(({ name, token }, index) =>
    startWriters({
      ...shared,
      baseUrl: `${apis[index]?.program.origin}${prefix}`,
      token,
      label: name,
      apiWriters: writersEach,
      sqlWriters: 0,
    }),
  );
  const ofSql = startWriters({
    ...shared,
    baseUrl: `${apis[0]?.program.origin}${prefix}`,
    token: "",
    label: "sql",
    apiWriters: 0,
    sqlWriters: writersEach,
  });
  const all: readonly Writers[] = [...ofApi, ofSql];
  return {
    tried: () => all.flatMap(({ tried }) => tried),
    acknowledged: () => all.reduce((sum, one) => sum + one.acknowledged(), 0),
    // After SIGSTOP, a process reports that a request took too long to arrive.
    unexpected: () => all.flatMap(({ faults }) => faults).filter((line) => !/^[A-Z]+ 408 /.test(line)),
    statuses() {
      const counts: Record<string, number> = {};
      for (const [status, times] of all.flatMap(({ statuses }) => [...statuses]))
        counts[status] = (counts[status] ?? 0) + times;
      return counts;
    },
    async stop() {
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<never>((_resolve, reject) => {
        const failure = new Error(`a writer had no answer within ${stopLimitMs / 1000} s`);
        timer = setTimeout(() => reject(failure), stopLimitMs);
      });
      try {
        await Promise.race([Promise.all(all.map((one) => one.stop())), late]);
      } finally {
        clearTimeout(timer);
      }
    },
  };
}
