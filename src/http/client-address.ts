import type { IncomingMessage } from "node:http";
import ipaddr from "ipaddr.js";

/** Tells who sends a request: the address of the connection, or the one that a trusted proxy gives. */
export interface ClientAddresses {
  /** In one spelling for each address; undefined when the connection is gone. */
  of(request: IncomingMessage): string | undefined;
  isTrustedProxy(address: string): boolean;
}

/**
 * @param trustedProxies CIDRs. Of `X-Forwarded-For`, the last address that is none of them is the client's: what stands before it was
 *   written by the client.
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

/** What addresses are counted by: an IPv6 client has a whole /64, out of which it can take any address. */
export function addressBlock(address: string): string {
  const parsed = parse(address);
  if (parsed === undefined || parsed.kind() === "ipv4") return address;
  return `${(parsed as ipaddr.IPv6).parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(":")}::/64`;
}

function parse(address: string): ipaddr.IPv4 | ipaddr.IPv6 | undefined {
  // `process` reads `::ffff:10.0.0.1`, as a socket for both families names an IPv4 client, as 10.0.0.1.
  return ipaddr.isValid(address) ? ipaddr.process(address) : undefined;
}

function normal(address: string | undefined): string | undefined {
  return address === undefined ? undefined : parse(address)?.toString();
}

/** Some proxies write `10.0.0.1:1234` and `[::1]:1234`. */
function withoutPort(hop: string): string {
  return /^\[([^\]]{0,45})\]/.exec(hop)?.[1] ?? /^([\d.]{7,15}):\d{1,5}$/.exec(hop)?.[1] ?? hop;
}
