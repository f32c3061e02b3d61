import type { Pool } from "pg";
import type { StatementNames } from "../db/statement-name.ts";
import { createBatchedSql, type SqlOf } from "../db/batched-sql.ts";
import type { Turns } from "../kit/turns.ts";

/** The user and the resource of a list. */
export interface ListHolder {
  readonly userId: number;
  readonly resource: string;
}

/** How lists of records reach the database: in turns of their user and of their resource. */
export interface ListDatabase {
  /** Runs statements of lists. Those that wait for the same turn go to the server together. */
  readonly sql: SqlOf<ListHolder>;
  /** Whether a statement would have to wait for the user's turn. */
  isBusy(holder: ListHolder): boolean;
  /** Runs reads that do not go through `sql`. */
  inTurn<T>(holder: ListHolder, act: () => Promise<T>): Promise<T>;
}

/**
 * @param users Turns of users, at lists of all resources together.
 * @param resources Turns of resources: a locked table keeps no more than its share of the
 *   connections.
 */
export function createListDatabase({
  pool,
  names,
  users,
  resources,
}: {
  readonly pool: Pool;
  readonly names: StatementNames;
  readonly users: Turns;
  readonly resources: Turns<string>;
}): ListDatabase {
  const inTurn: ListDatabase["inTurn"] = ({ userId, resource }, act) =>
    users.run(userId, () => resources.run(resource, act));
  const sql = createBatchedSql<ListHolder>({
    pool,
    names,
    // A text is of one resource.
    keyOf: ({ userId }) => String(userId),
    inTurn,
    kind: "equal reads",
  });
  return { sql, inTurn, isBusy: ({ userId }) => !users.isFree(userId) };
}
