import type { Sql } from "../../src/db/sql.ts";

/** Statements that the service runs on a long history (`makeLongHistory`). */
export interface HotWork {
  readonly name: string;
  /**
   * Limit of the rows that one of its statements reads: a few for each row that it returns or
   * writes.
   */
  readonly mostRead: number;
  /**
   * Pool of the statements; each pool has its own settings. Backlogs and lists also use
   * `createIndexSql`.
   */
  readonly pool: "pool" | "lists" | "relay" | "dispatcher";
  readonly isByIndex?: true;
  readonly run: (sql: Sql) => Promise<unknown>;
}
