import { createAgents } from "../outbound/connections.ts";
import { createSharedLookup, type AddressLookup } from "../outbound/shared-lookup.ts";
import { createTargetPolicy } from "../outbound/targets.ts";

/**
 * Fetches a JSON document. Rejects on failure; the message does not reveal the address behind the
 * URL.
 */
export type FetchJson = (url: string) => Promise<unknown>;

/** Limit for DNS, connect, TLS, head and body together. */
const timeoutMs = 5_000;
const maxBytes = 256 * 1024;

/**
 * Creates a fetcher whose connections are checked like those to webhooks. They lead to public
 * addresses and to `allowedNetworks` only. It follows no redirect, uses no proxy, tries once, and
 * reads at most 256 KiB.
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
    // Addresses in a URL are not looked up, so the agents do not check them.
    const refusal = policy.refusalOfUrl(url);
    if (refusal !== undefined) throw new Error(refusal);
    // Imports lazily, because most services verify no JWTs, and loading it takes 5 MB.
    const { got } = await import("got");
    const request = got(url, {
      agent,
      followRedirect: false,
      retry: { limit: 0 },
      timeout: { request: timeLimitMs },
      // Compressed answers are not inflated, because a few bytes can become gigabytes.
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
