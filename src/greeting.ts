import type { RunningApi } from "./api.ts";
import type { Foundation } from "./foundation.ts";
import { ensureFirstUser } from "./users/first-user.ts";

/** What a start prints for people: where the API is, and a command that works when pasted. */
export async function greeting({
  foundation,
  api,
}: {
  readonly foundation: Foundation;
  readonly api: RunningApi;
}): Promise<string> {
  const { config, database } = foundation;
  const host = ["0.0.0.0", "::"].includes(config.http.host) ? "localhost" : config.http.host;
  const origin = config.http.publicUrl ?? `http://${host.includes(":") ? `[${host}]` : host}:${api.port}`;
  const baseUrl = `${origin}${config.http.routePrefix}`;
  const tokenFile =
    config.database.url === undefined
      ? await ensureFirstUser({ prisma: database.prisma, tokens: api.tokens, dataDir: config.dataDir })
      : undefined;
  const command =
    tokenFile === undefined
      ? `curl 'http://${host}:${config.metrics.port}/readyz?verbose'   # tokens: svc-admin create-user`
      : `curl -H "Authorization: Bearer $(cat '${tokenFile}')" ${baseUrl}/resources`;
  return `\nsvc serves ${baseUrl}\n\n  ${command}\n`;
}
