import type { Pool } from "pg";
import type { StatementNames } from "../db/statement-name.ts";
import { createBatchedSql, type SqlOf } from "../db/batched-sql.ts";
import { setBounded } from "../kit/bounded-map.ts";
import { createTurns, type Turns } from "../kit/turns.ts";

/** The user and the resource of a list. */
export interface ListHolder {
  readonly userId: number;
  readonly resource: string;
}

/** Database access of lists of records, in turns of their user and of their resource. */
export interface ListDatabase {
  /** Returns the SQL of lists. Statements that wait for the same turn go to the server together. */
  readonly sql: SqlOf<ListHolder>;
  /** Returns whether a statement would have to wait for the user's turn. */
  isBusy(holder: ListHolder): boolean;
  /** Runs reads that do not use `sql`. */
  inTurn<T>(holder: ListHolder, act: () => Promise<T>): Promise<T>;
}

/**
 * Time of a statement that gets a connection although no place is free. Most lists take a few ms. A
 * longer one is ended, waits for a place and is run again. The user cannot try another one
 * meanwhile.
 */
const quickMs = 250;
/**
 * A user whose lists lately took longer, on average, always waits for a place. Lists of 130 ms of
 * five users otherwise used all connections, and those of others took seconds.
 */
const quickOnAverageMs = 50;
/** Most users whose average is known. */
const mostUsers = 10_000;

/**
 * Creates the access. The places are the connections that lists may hold for as long as they take.
 * One connection stays for lists that end soon. Without it, lists of 5 s of three users made each
 * list of their resource take 5 s. Those of six users delayed the lists of all resources.
 *
 * @param users Turns of users, over the lists of all resources.
 * @param places Places of all resources, and of one: a locked table blocks no more than these.
 */
export function createListDatabase({
  pool,
  names,
  users,
  places,
}: {
  readonly pool: Pool;
  readonly names: StatementNames;
  readonly users: Turns;
  readonly places: { readonly ofAll: number; readonly ofEach: number };
}): ListDatabase {
  const [all, resources] = [createTurns<"all">(places.ofAll), createTurns<string>(places.ofEach)];
  /** Average duration of the statements of a user in ms, by user. */
  const averages = new Map<number, number>();
  const inPlace: ListDatabase["inTurn"] = ({ resource }, act) =>
    resources.run(resource, () => all.run("all", act));
  const inTurn: ListDatabase["inTurn"] = (holder, act) =>
    users.run(holder.userId, () => inPlace(holder, act));
  const mayPass = ({ userId, resource }: ListHolder): boolean =>
    !(resources.isFree(resource) && all.isFree("all")) && (averages.get(userId) ?? 0) <= quickOnAverageMs;
  const sql = createBatchedSql<ListHolder>({
    pool,
    names,
    // Each text belongs to one resource.
    keyOf: ({ userId }) => String(userId),
    inTurn,
    inBatchTurn: (holder, act) =>
      users.run(holder.userId, () => (mayPass(holder) ? act(quickMs) : inPlace(holder, act))),
    onTaken({ userId }, ms) {
      const before = averages.get(userId) ?? 0;
      setBounded(averages, [userId, before + (ms - before) / 4], mostUsers);
    },
    kind: "equal reads",
  });
  return { sql, inTurn, isBusy: ({ userId }) => !users.isFree(userId) };
}
