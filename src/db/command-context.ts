import type { Actor } from "../kit/actor.ts";
import type { Sql, Transact } from "./sql.ts";

/** The parts of an open database that the commands of all rooms use. */
export interface CommandContext {
  readonly sql: Sql;
  /** Reads lists by index (`createIndexSql`). */
  readonly listSql: Sql;
  readonly transact: Transact;
  /** Who runs the command, for the audit trail. */
  readonly actor: Actor;
  close(): Promise<void>;
}
