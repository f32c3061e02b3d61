import type { Pool } from "pg";
import type { Sql } from "../db/sql.ts";
import type { Actor } from "../kit/actor.ts";
import type { Terminal } from "../kit/cli-output.ts";

/** The parts of an open database that the commands use. */
export interface CommandContext {
  readonly database: { readonly pool: Pool };
  readonly sql: Sql;
  /** The person or program that runs the command. */
  readonly actor: Actor;
  close(): Promise<void>;
}

/** Dependencies of a command: the opening of the database, and the terminal. */
export interface CommandOptions<Context extends CommandContext = CommandContext> {
  readonly open: () => Promise<Context>;
  readonly terminal: Terminal;
}
