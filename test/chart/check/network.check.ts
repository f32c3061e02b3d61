import { expect } from "chai";
import ipaddr from "ipaddr.js";
import { createTargetPolicy } from "../../../src/outbound/targets.ts";
import { render, type Peer } from "./chart.ts";

type SpecialRange = readonly [network: ipaddr.IPv4 | ipaddr.IPv6, bits: number];

/** Members that the types of ipaddr.js lack. */
interface WithRanges {
  readonly SpecialRanges: Readonly<Record<string, SpecialRange | readonly SpecialRange[]>>;
}

const allowedNetworks = ["10.30.0.0/16", "fd00:30::/32"];

function peers(component: string): readonly Peer[] {
  const values = {
    networkPolicy: { enabled: true },
    config: { settings: { webhooks: { allowedNetworks } } },
  };
  const policy = render({ values }).find(
    ({ kind, metadata }) => kind === "NetworkPolicy" && metadata.name.endsWith(component),
  );
  return (policy?.spec?.egress ?? [])
    .flatMap(({ to }) => to ?? [])
    .filter(({ ipBlock }) => ipBlock !== undefined);
}

const isIn = (address: string, cidr: string): boolean => {
  const parsed = ipaddr.parse(address);
  const [network, bits] = ipaddr.parseCIDR(cidr);
  return parsed.kind() === network.kind() && parsed.match(network, bits);
};

/** The first and the last address of every range that is not public, and their neighbours. */
function edges(): readonly string[] {
  return [ipaddr.IPv4, ipaddr.IPv6].flatMap((kind) => {
    const ranges = Object.values((kind.prototype as unknown as WithRanges).SpecialRanges);
    return ranges
      .flatMap((range) => (Array.isArray(range[0]) ? (range as SpecialRange[]) : [range as SpecialRange]))
      .flatMap(([network, bits]) => {
        const bytes = network.toByteArray();
        const size = 8n * BigInt(bytes.length);
        const first = bytes.reduce((sum, byte) => sum * 256n + BigInt(byte), 0n);
        const last = first + (1n << (size - BigInt(bits))) - 1n;
        return [first - 1n, first, last, last + 1n]
          .filter((number) => number >= 0n && number < 1n << size)
          .map((number) =>
            bytes.map((_, index) => Number((number >> (size - 8n * BigInt(index + 1))) & 255n)),
          )
          .map((octets) => ipaddr.fromByteArray(octets).toString());
      });
  });
}

describe("the NetworkPolicies", () => {
  // The API sends test deliveries, and fetches the keys of the issuer of JWTs.
  for (const component of ["api", "dispatcher"])
    it(`permit exactly the destinations of ${component}`, () => {
      const rules = peers(component);
      const targets = createTargetPolicy(allowedNetworks);
      const addresses = [
        ...edges(),
        "1.1.1.1",
        "168.63.129.15",
        "168.63.129.16",
        "168.63.129.17",
        "2606:4700::1111",
        "10.29.255.255",
        "10.30.0.0",
        "10.30.255.255",
        "10.31.0.0",
        "fd00:30::1",
      ];

      expect(addresses.length).to.be.greaterThan(100);
      for (const address of addresses) {
        const isLetThrough = rules.some(
          ({ ipBlock }) =>
            ipBlock && isIn(address, ipBlock.cidr) && !ipBlock.except?.some((cidr) => isIn(address, cidr)),
        );
        expect(isLetThrough, address).to.equal(targets.refusalOf(address) === undefined);
      }
    });
});
