import { serviceActor } from "../kit/actor.ts";
import type { Config } from "../config/load.ts";
import type { Infrastructure } from "./infrastructure.ts";
import { hostInUrl, isEverywhere } from "../kit/host.ts";
import type { TokenProvider } from "../users/provider.ts";
import { createTransact } from "../db/sql.ts";
import { ensureFirstUser } from "../users/first-user.ts";
import { createUserStore } from "../users/store.ts";

/**
 * Returns what a start prints for people: the addresses of API and console, and a command to paste.
 */
export async function greeting({
  infrastructure: { database, sql },
  config,
  port,
  tokens,
}: {
  readonly infrastructure: Infrastructure;
  readonly config: Config;
  /** Port of the API. */
  readonly port: number;
  readonly tokens: TokenProvider;
}): Promise<string> {
  const origin = config.http.publicUrl ?? `http://${shown(config.http.host)}:${port}`;
  const baseUrl = `${origin}${config.http.routePrefix}`;
  const tokenFile =
    config.database.url === undefined
      ? await ensureFirstUser({
          // Only `svc all` runs on the embedded database.
          users: createUserStore({
            sql,
            transact: createTransact(database.pool),
            actor: serviceActor("all"),
          }),
          tokens,
          dataDir: config.dataDir,
        })
      : undefined;
  const command =
    tokenFile === undefined
      ? `curl 'http://${shown(config.metrics.host)}:${config.metrics.port}/readyz?verbose'   # tokens: svc-admin create-user`
      : `curl -H "Authorization: Bearer $(cat '${tokenFile}')" ${baseUrl}/resources`;
  const page = config.console.enabled ? `\nConsole: ${origin}${config.console.path}\n` : "";
  return `\nsvc serves ${baseUrl}\n\n  ${command}\n${page}`;
}

function shown(host: string): string {
  return isEverywhere(host) ? "localhost" : hostInUrl(host);
}
