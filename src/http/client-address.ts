import type { IncomingMessage } from "node:http";
import ipaddr from "ipaddr.js";

/** Returns the sender's address: the connection's, or the one that a trusted proxy gives. */
export interface ClientAddresses {
  /** In one spelling for each address; undefined when the connection is gone. */
  of(request: IncomingMessage): string | undefined;
  isTrustedProxy(address: string): boolean;
}

/**
 * @param trustedProxies CIDRs. The last address of `X-Forwarded-For` that is in none of them is the
 *   client's. The client itself may have written those before it.
 */
export function createClientAddresses(trustedProxies: readonly string[]): ClientAddresses {
  const networks = trustedProxies.map((network) => ipaddr.parseCIDR(network));

  function isTrustedProxy(address: string): boolean {
    const parsed = parse(address);
    return (
      parsed !== undefined &&
      networks.some(
        ([network, bits]) => network.kind() === parsed.kind() && parsed.match([network, bits] as never),
      )
    );
  }

  return {
    isTrustedProxy,
    of(request) {
      const peer = normal(request.socket.remoteAddress);
      if (networks.length === 0 || peer === undefined || !isTrustedProxy(peer)) return peer;
      // The proxy nearest to this service writes last.
      const hops = [request.headers["x-forwarded-for"] ?? ""].flat().join(",").split(",").toReversed();
      for (const hop of hops) {
        const address = normal(withoutPort(hop.trim()));
        if (address === undefined) return peer;
        if (!isTrustedProxy(address)) return address;
      }
      return peer;
    },
  };
}

/**
 * Returns the key by which addresses are counted. An IPv6 client has a whole /64, and can take any
 * address of it.
 */
export function addressBlock(address: string): string {
  const parsed = parse(address);
  if (parsed === undefined || parsed.kind() === "ipv4") return address;
  return `${(parsed as ipaddr.IPv6).parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(":")}::/64`;
}

function parse(address: string): ipaddr.IPv4 | ipaddr.IPv6 | undefined {
  // `process` reads `::ffff:10.0.0.1`, a socket's name of an IPv4 client, as 10.0.0.1.
  return ipaddr.isValid(address) ? ipaddr.process(address) : undefined;
}

/** Spellings of the last addresses: to parse one takes 3 us, for each request. */
const spellings = new Map<string, string | undefined>();
const mostSpellings = 1000;
/** Characters of an address that is kept; a proxy may pass on anything. */
const longestKept = 64;

function normal(address: string | undefined): string | undefined {
  if (address === undefined) return undefined;
  if (spellings.has(address)) return spellings.get(address);
  const spelling = parse(address)?.toString();
  if (address.length > longestKept) return spelling;
  if (spellings.size >= mostSpellings) spellings.clear();
  spellings.set(address, spelling);
  return spelling;
}

/** Some proxies write `10.0.0.1:1234` and `[::1]:1234`. */
function withoutPort(hop: string): string {
  return /^\[([^\]]{0,45})\]/.exec(hop)?.[1] ?? /^([\d.]{7,15}):\d{1,5}$/.exec(hop)?.[1] ?? hop;
}
