import type { Sql } from "../../src/db/sql.ts";

/** Statements that the service runs on a long history (`makeLongHistory`). */
export interface HotWork {
  readonly name: string;
  /** Rows that one statement of it may read: a few for each that it answers or writes. */
  readonly mostRead: number;
  /**
   * By which connections; each kind has settings of its own. Backlogs and lists are also read by
   * `createIndexSql`.
   */
  readonly pool: "pool" | "lists" | "relay" | "dispatcher";
  readonly isByIndex?: true;
  readonly run: (sql: Sql) => Promise<unknown>;
}
