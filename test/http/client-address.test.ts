import { expect } from "chai";
import type { IncomingMessage } from "node:http";
import { addressBlock, createClientAddresses } from "../../src/http/client-address.ts";

const requestFrom = (remoteAddress: string | undefined, forwarded?: string): IncomingMessage =>
  ({
    socket: { remoteAddress },
    headers: forwarded === undefined ? {} : { "x-forwarded-for": forwarded },
  }) as unknown as IncomingMessage;

describe("createClientAddresses", () => {
  const addresses = createClientAddresses(["10.0.0.0/8", "fd00::/8"]);

  for (const [what, peer, forwarded, client] of [
    ["the peer without a proxy", "203.0.113.9", "198.51.100.1", "203.0.113.9"],
    ["the peer of a socket for both families", "::ffff:203.0.113.9", undefined, "203.0.113.9"],
    ["the forwarded client", "10.0.0.1", "198.51.100.1", "198.51.100.1"],
    ["the client behind two proxies", "::ffff:10.0.0.1", "198.51.100.1, 10.0.0.2", "198.51.100.1"],
    ["not what the client wrote", "10.0.0.1", "1.1.1.1, 198.51.100.1", "198.51.100.1"],
    ["an address with a port", "10.0.0.1", "198.51.100.1:4711", "198.51.100.1"],
    ["an IPv6 address with a port", "fd00::1", "[2001:DB8::1]:4711", "2001:db8::1"],
    ["the proxy when it forwards nothing", "10.0.0.1", undefined, "10.0.0.1"],
    ["the proxy when it forwards no address", "10.0.0.1", "unknown", "10.0.0.1"],
    [
      "the proxy when a hop behind the client's is no address",
      "10.0.0.1",
      "198.51.100.1, unknown",
      "10.0.0.1",
    ],
    ["the proxy when all are proxies", "10.0.0.1", "10.0.0.2, 10.0.0.3", "10.0.0.1"],
    [
      "the proxy behind more than 16 others",
      "10.0.0.1",
      `198.51.100.1${", 10.0.0.2".repeat(16)}`,
      "10.0.0.1",
    ],
    ["the client behind 16 proxies", "10.0.0.1", `198.51.100.1${", 10.0.0.2".repeat(15)}`, "198.51.100.1"],
    ["nothing when the connection is gone", undefined, undefined, undefined],
  ] as const) {
    it(`gives ${what}`, () => expect(addresses.of(requestFrom(peer, forwarded))).to.equal(client));
  }

  it("believes nobody by default", () => {
    expect(createClientAddresses([]).of(requestFrom("10.0.0.1", "198.51.100.1"))).to.equal("10.0.0.1");
  });
});

describe("addressBlock", () => {
  it("is the address of an IPv4 client, and the /64 of an IPv6 one", () => {
    expect(["203.0.113.9", "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::9"].map(addressBlock)).to.deep.equal([
      "203.0.113.9",
      "2001:db8:1:2::/64",
      "2001:db8:1:2::/64",
    ]);
  });
});
