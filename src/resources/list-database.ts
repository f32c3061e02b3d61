import type { Pool } from "pg";
import type { StatementNames } from "../db/statement-name.ts";
import { createBatchedSql, type SqlOf } from "../db/batched-sql.ts";
import type { Turns } from "../kit/turns.ts";

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
 * @param users Turns of users, over the lists of all resources.
 * @param resources Turns of resources. A locked table blocks no more than its share of the
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
    // Each text belongs to one resource.
    keyOf: ({ userId }) => String(userId),
    inTurn,
    kind: "equal reads",
  });
  return { sql, inTurn, isBusy: ({ userId }) => !users.isFree(userId) };
}
