import type { IncomingMessage } from "node:http";
import ipaddr from "ipaddr.js";
import { setBounded } from "../kit/bounded-map.ts";

/** Finds the sender's address: that of the connection, or the one that a trusted proxy forwards. */
export interface ClientAddresses {
  /** Returns the address in one spelling; undefined when the connection is closed. */
  of(request: IncomingMessage): string | undefined;
  isTrustedProxy(address: string): boolean;
}

/**
 * Limit of the forwarded addresses, far above the proxies of a chain. A client within the trusted
 * networks could write 1,600, which took 10 ms before any authentication.
 */
const mostHops = 16;

/**
 * @param trustedProxies CIDRs. The last address of `X-Forwarded-For` that is in none of these is
 *   the client's. The client itself may have written the addresses before it.
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
      // Reverses the list, because the proxy nearest to this service writes last.
      const hops = [request.headers["x-forwarded-for"] ?? ""]
        .flat()
        .join(",")
        .split(",")
        .slice(-mostHops)
        .toReversed();
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
 * Returns the key for counting by address. An IPv6 client has a whole /64 network, and can use any
 * address in it.
 */
export function addressBlock(address: string): string {
  return networkOf(address, 4) ?? address;
}

/**
 * Returns the key of the /48 network of an IPv6 address; undefined for IPv4. One client may have a
 * /48, which holds 65,536 networks of `addressBlock`.
 */
export function wideBlock(address: string): string | undefined {
  return networkOf(address, 3);
}

/** @param parts Number of the leading groups of 16 bits. */
function networkOf(address: string, parts: number): string | undefined {
  // Every request may need this, and parsing takes 3 us.
  if (!address.includes(":")) return undefined;
  const parsed = parse(address);
  if (parsed === undefined || parsed.kind() === "ipv4") return undefined;
  const leading = (parsed as ipaddr.IPv6).parts.slice(0, parts).map((part) => part.toString(16));
  return `${leading.join(":")}::/${16 * parts}`;
}

function parse(address: string): ipaddr.IPv4 | ipaddr.IPv6 | undefined {
  // `process` reads `::ffff:10.0.0.1`, which a socket calls an IPv4 client, as 10.0.0.1.
  return ipaddr.isValid(address) ? ipaddr.process(address) : undefined;
}

/**
 * Cache of the spellings of the last addresses, because each request would take 3 us to parse one.
 */
const spellings = new Map<string, string | undefined>();
const mostSpellings = 1000;
/** Limit in characters of a cached address; a proxy may forward any text. */
const longestKept = 64;

function normal(address: string | undefined): string | undefined {
  if (address === undefined) return undefined;
  if (spellings.has(address)) return spellings.get(address);
  const spelling = parse(address)?.toString();
  if (address.length > longestKept) return spelling;
  setBounded(spellings, [address, spelling], mostSpellings);
  return spelling;
}

/** Removes the port that some proxies write: `10.0.0.1:1234` and `[::1]:1234`. */
function withoutPort(hop: string): string {
  return /^\[([^\]]{0,45})\]/.exec(hop)?.[1] ?? /^([\d.]{7,15}):\d{1,5}$/.exec(hop)?.[1] ?? hop;
}
