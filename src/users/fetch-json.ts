import { createAgents } from "../outbound/connections.ts";
import { createSharedLookup, type AddressLookup } from "../outbound/shared-lookup.ts";
import { createTargetPolicy } from "../outbound/targets.ts";

/** Fetches a JSON document. Rejects on failure; the message names no address behind the URL. */
export type FetchJson = (url: string) => Promise<unknown>;

/** For DNS, connect, TLS, head and body. */
const timeoutMs = 5_000;
const maxBytes = 256 * 1024;

/**
 * Fetches over connections that are vetted like those to webhooks: to public addresses and to
 * `allowedNetworks`. Follows no redirect, uses no proxy, tries once, and reads at most 256 KiB.
 *
 * @param allowedNetworks CIDRs.
 */
export function createFetchJson({
  allowedNetworks,
  timeLimitMs = timeoutMs,
  lookup = createSharedLookup(),
}: {
  readonly allowedNetworks: readonly string[];
  readonly timeLimitMs?: number;
  readonly lookup?: AddressLookup;
}): FetchJson {
  const policy = createTargetPolicy(allowedNetworks);
  const agent = createAgents({ policy, keepAlive: false, maxSockets: 4, lookup });
  return async (url) => {
    // Addresses in a URL are not looked up, and so not seen by the agents.
    const refusal = policy.refusalOfUrl(url);
    if (refusal !== undefined) throw new Error(refusal);
    // Most services verify no JWTs, and loading it takes 5 MB.
    const { got } = await import("got");
    const request = got(url, {
      agent,
      followRedirect: false,
      retry: { limit: 0 },
      timeout: { request: timeLimitMs },
      // A few bytes can stand for gigabytes.
      decompress: false,
      headers: { accept: "application/json" },
    });
    void request.on("downloadProgress", ({ transferred }) => {
      if (transferred > maxBytes) request.cancel(`The answer is larger than ${maxBytes} bytes.`);
    });
    const { statusCode, body } = await request;
    if (statusCode !== 200) throw new Error(`The answer has the status ${statusCode}.`);
    return JSON.parse(body) as unknown;
  };
}
