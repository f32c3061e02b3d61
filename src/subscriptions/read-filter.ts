import type { Sql } from "../db/sql.ts";
import { databaseFaultOf, type DatabaseFault } from "../db/database-fault.ts";
import { codeOf } from "../kit/errors.ts";
import type { Definition } from "../mapping/definition.ts";
import { alternativesOf } from "../querying/alternatives.ts";
import type { Condition } from "../querying/condition.ts";
import { idsForLog, type Log } from "../telemetry/log.ts";
import { findReaders, type EventReaders } from "./find-readers.ts";
import { judgeInTime, type SlowReaders } from "./judge-in-time.ts";
import { judgeSnapshots, type JudgedPair } from "./snapshot-judge.ts";
import type { SnapshotColumn } from "./snapshot-row-sql.ts";

/** The filter of `access.read` of a resource. */
export interface ReadFilter {
  readonly definition: Definition;
  readonly condition: Condition;
}

interface ReadFilterOptions {
  /** Reads the snapshots of events. */
  readonly sql: Sql;
  readonly log: Log;
}

/**
 * Time for which a rule is not applied after a fault of its tables. The rule took too long, such as
 * with a lock on its table, or could not read a table. Each try delays the deliveries of other
 * resources.
 */
const restMs = 10_000;

/** Returns the readers of each event by the filter, in the order of the events' ids. */
export async function filteredReaders(
  options: ReadFilterOptions,
  { definition, condition }: ReadFilter,
  ids: readonly string[],
): Promise<readonly EventReaders[]> {
  const alternatives = alternativesOf(condition);
  if (alternatives.length === 0 || ids.length === 0) return ids.map(() => []);
  const find = (eventIds: readonly string[]): ReturnType<typeof findReaders> =>
    findReaders({ sql: options.sql, definition, eventIds }, alternatives);
  const found = await withoutUnfit(options, { definition, ids }, find);
  const readers = new Map(found.flatMap((one) => [...one]));
  return ids.map((id) => readers.get(id) ?? []);
}

/** State of the filters that judge pairs. */
export interface Judging {
  /** Reads the snapshots of several events, with the limit `judgeLimitMs`. */
  readonly quickSql: Sql;
  /** Time until which a resource's filter is not applied after a failure, by resource. */
  readonly resting: Map<string, number>;
  readonly slow: SlowReaders;
}

/**
 * Returns by key whether the pairs pass the filter of `access.read`. Leaves out pairs that cannot
 * be decided now, and all while the filter fails or rests.
 */
export async function judgeFilter(
  options: ReadFilterOptions & Judging,
  { definition, condition }: ReadFilter,
  pairs: readonly JudgedPair[],
  which: SnapshotColumn,
): Promise<ReadonlyMap<string, boolean>> {
  const { resting, slow } = options;
  const { name: resource } = definition;
  if (performance.now() < (resting.get(resource) ?? 0)) return new Map();
  const ask = async (asked: readonly JudgedPair[]): Promise<ReadonlySet<string>> => {
    const sql = asked.length > 1 ? options.quickSql : options.sql;
    const ids = [...new Set(asked.map(({ event }) => event.id))];
    const found = await withoutUnfit(options, { definition, ids }, (some) => {
      const own = asked.filter(({ event }) => some.includes(event.id));
      return judgeSnapshots(sql, definition, condition, own, which);
    });
    return new Set(found.flatMap((one) => [...one]));
  };
  try {
    return await judgeInTime({ ask, resource, slow }, pairs);
  } catch (error) {
    // The deliveries of other resources must not wait for this one.
    if (isOfTables(error)) resting.set(resource, performance.now() + restMs);
    else if (databaseFaultOf(error).kind === "unavailable") throw error;
    options.log.error({ err: error, resource }, "access.read failed");
    return new Map();
  }
}

/**
 * PostgreSQL's codes of faults in the tables of one rule, which may last: a foreign server is
 * unavailable (08, HV); a conflict (40); no memory or disk (53); a lock, or a view before its
 * REFRESH (55).
 */
const codesOfTables = ["08", "HV", "40", "531", "532", "534", "55", "57014"];

/**
 * Returns whether a statement failed because of the tables that it reads, so that others may work.
 */
function isOfTables(error: unknown): boolean {
  const code = codeOf(error);
  // 08P01 is PgBouncer's own code for faults of the connection.
  if (code === undefined || code === "08P01") return false;
  return codesOfTables.some((prefix) => code.startsWith(prefix));
}

const unfitKinds: readonly DatabaseFault["kind"][] = ["bad_value", "not_null", "check"];

/**
 * Judges all events together. Halves them when a snapshot does not fit the table: a column has
 * another type, or a domain refuses a value. Only admins read the events that do not fit.
 */
async function withoutUnfit<T>(
  { log }: Pick<ReadFilterOptions, "log">,
  { definition, ids }: { readonly definition: Definition; readonly ids: readonly string[] },
  ask: (ids: readonly string[]) => Promise<T>,
): Promise<readonly T[]> {
  const unfit: string[] = [];
  let fault: unknown;
  const askFor = async (some: readonly string[]): Promise<readonly T[]> => {
    try {
      return [await ask(some)];
    } catch (error) {
      if (!unfitKinds.includes(databaseFaultOf(error).kind)) throw error;
      if (some.length <= 1) {
        fault = error;
        unfit.push(...some);
        return [];
      }
    }
    const half = Math.ceil(some.length / 2);
    return [...(await askFor(some.slice(0, half))), ...(await askFor(some.slice(half)))];
  };
  const answers = await askFor(ids);
  // Each read of the feed finds these events again, so one line per event would be thousands a
  // second.
  if (unfit.length > 0) {
    const { name: resource } = definition;
    log.error(
      { err: fault, resource, events: unfit.length, eventIds: idsForLog(unfit) },
      "access.read failed",
    );
  }
  return answers;
}
