import type { Pool } from "pg";
import type { StatementNames } from "../db/statement-name.ts";
import { createBatchedSql, type SqlOf } from "../db/batched-sql.ts";
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
 * meanwhile. So such tries take a small part of the connection, however many users make them.
 */
const quickMs = 250;

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
  const inPlace = <T>(resource: string, act: () => Promise<T>): Promise<T> =>
    resources.run(resource, () => all.run("all", act));
  const inTurn: ListDatabase["inTurn"] = ({ userId, resource }, act) =>
    users.run(userId, () => inPlace(resource, act));
  const sql = createBatchedSql<ListHolder>({
    pool,
    names,
    // Each text belongs to one resource.
    keyOf: ({ userId }) => String(userId),
    inTurn,
    inBatchTurn: ({ userId, resource }, act) =>
      users.run(userId, () =>
        resources.isFree(resource) && all.isFree("all") ? inPlace(resource, act) : act(quickMs),
      ),
    kind: "equal reads",
  });
  return { sql, inTurn, isBusy: ({ userId }) => !users.isFree(userId) };
}
