import type { Config } from "../config/load.ts";
import { hostInUrl, isEverywhere } from "../kit/host.ts";

/**
 * Returns the text that a start prints for people: the addresses of API and console, and a command
 * to paste.
 *
 * @param port Port of the API in use.
 * @param tokenFile File with the token of the first user, on the embedded database.
 */
export function greeting({
  config,
  port,
  metricsPort,
  tokenFile,
}: {
  readonly config: Config;
  readonly port: number;
  readonly metricsPort: number;
  readonly tokenFile: string | undefined;
}): string {
  const origin = config.http.publicUrl ?? `http://${shown(config.http.host)}:${port}`;
  const baseUrl = `${origin}${config.http.routePrefix}`;
  const command =
    tokenFile === undefined
      ? `curl 'http://${shown(config.metrics.host)}:${metricsPort}/readyz?verbose'   # tokens: svc-admin create-user`
      : `curl -H "Authorization: Bearer $(cat '${tokenFile}')" ${baseUrl}/resources`;
  const page = config.console.enabled ? `\nConsole: ${origin}${config.console.path}\n` : "";
  return `\nsvc serves ${baseUrl}\n\n  ${command}\n${page}`;
}

function shown(host: string): string {
  return isEverywhere(host) ? "localhost" : hostInUrl(host);
}
