import type { Pool } from "pg";
import type { Sql } from "../db/sql.ts";
import type { Actor } from "../kit/actor.ts";

/** The parts of an open database that the commands use. */
export interface CommandContext {
  readonly database: { readonly pool: Pool };
  readonly sql: Sql;
  /** The person or program that runs the command. */
  readonly actor: Actor;
  close(): Promise<void>;
}
