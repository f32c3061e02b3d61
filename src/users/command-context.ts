import type { CommandContext } from "../db/command-context.ts";
import type { Transact } from "../db/sql.ts";
import { withOpened, type CommandOptions } from "../kit/cli-output.ts";
import type { Log } from "../telemetry/log.ts";
import { createTokenProvider, type TokenProvider } from "./provider.ts";
import { createUserStore, type UserStore } from "./store.ts";

/** Dependencies of the commands: the opening of the database, and the terminal. */
export type UserCommandsOptions = CommandOptions<
  CommandContext & {
    readonly log: Log;
    readonly config: { readonly auth: { readonly jwt?: { readonly issuer: string } | undefined } };
  }
>;

/** The opened stores of a command. */
export interface OpenedUsers {
  readonly transact: Transact;
  readonly users: UserStore;
  readonly tokens: TokenProvider;
  /** Names of the resources that `svc-admin migrate` has installed. */
  readonly resources: () => Promise<readonly string[]>;
  /** Issuer of the accepted JWTs. Undefined: JWTs are not accepted. */
  readonly issuer: string | undefined;
}

/** Opens the stores for commands of users and tokens, and closes them after the work. */
export function withUsers<T>(
  open: UserCommandsOptions["open"],
  work: (opened: OpenedUsers) => Promise<T>,
): Promise<T> {
  return withOpened(open, ({ sql, transact, log, actor, config }) =>
    work({
      transact,
      issuer: config.auth.jwt?.issuer,
      users: createUserStore({ sql, transact, actor }),
      tokens: createTokenProvider({ sql, transact, log, actor }),
      async resources() {
        const installed = await sql<{ name: string }>("SELECT name FROM svc.installed_resources");
        return installed.map(({ name }) => name);
      },
    }),
  );
}
