import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import { parseUrl } from "../kit/parse-url.ts";

const maxUrlLength = 2048;

/** The addresses that webhooks may be sent to. */
export interface TargetPolicy {
  /**
   * Returns why a connection to an address is refused: "a private address, which is outside the
   * allowed networks". Returns undefined when it is allowed.
   */
  refusalOf(address: string): string | undefined;
  /**
   * Returns why a subscription cannot have a URL, as a sentence; undefined when it can. Vets hosts
   * that are addresses, in any notation. Names are vetted at each connection, because their
   * addresses change.
   */
  refusalOfUrl(url: string): string | undefined;
}

/**
 * Creates the single rule for the targets of webhooks, for saving a subscription and for
 * connecting: public unicast addresses, and `allowedNetworks`.
 *
 * @param allowedNetworks CIDRs; throws on any other text, so check settings first.
 */
export function createTargetPolicy(allowedNetworks: readonly string[]): TargetPolicy {
  const networks = allowedNetworks.map((network) => ipaddr.parseCIDR(network));

  /** Returns the kind of a refused address; undefined for an allowed one. */
  function refusedKind(address: Address | undefined): string | undefined {
    const own = networks.filter(
      ([network, bits]) => network.kind() === address?.kind() && address.match(network, bits),
    );
    if (address === undefined || own.length === 0) return specialKind(address);
    const translated = translatedHost(address);
    // An allowed network of the whole prefix would allow every IPv4 host, including those of the
    // operator's network. The IPv4 host is therefore judged too.
    const isWhole = own.every(([, bits]) => bits <= translatedPrefixBits);
    return translated !== undefined && isWhole ? refusedKind(translated) : undefined;
  }

  function refusalOf(address: string): string | undefined {
    const kind = refusedKind(parseAddress(address));
    return kind === undefined ? undefined : `${kind}, which is outside the allowed networks`;
  }

  function refusalOfUrl(text: string): string | undefined {
    if (text.length > maxUrlLength) return `The url must not be longer than ${maxUrlLength} characters.`;
    const url = parseUrl(text);
    if (url === undefined || (url.protocol !== "http:" && url.protocol !== "https:"))
      return "The url must be a valid http or https URL.";
    if (url.username !== "" || url.password !== "")
      return "The url must not contain a user name or a password.";
    const refusals = literalAddresses(url.hostname).map(refusalOf);
    const refusal = refusals.every((item) => item !== undefined) ? refusals[0] : undefined;
    return refusal === undefined ? undefined : `The url must not point to ${refusal}.`;
  }

  return { refusalOf, refusalOfUrl };
}

/** Networks that webhooks may go to in addition to public addresses, as CIDRs. */
export interface ReceiverNetworks {
  readonly allowedNetworks: readonly string[];
  /** More networks, only for webhooks of users with the admin flag. */
  readonly adminNetworks: readonly string[];
}

/**
 * Creates a value for the networks of each kind of user: one for all users, and another for admins
 * when they have more networks.
 */
export function perUser<T>(
  { allowedNetworks, adminNetworks }: ReceiverNetworks,
  make: (networks: readonly string[]) => T,
): (user: { readonly isAdmin: boolean }) => T {
  const everybodys = make(allowedNetworks);
  const admins = adminNetworks.length === 0 ? everybodys : make([...allowedNetworks, ...adminNetworks]);
  return ({ isAdmin }) => (isAdmin ? admins : everybodys);
}

/** Returns the addresses of a parsed URL's host that need no look-up; none for an ordinary name. */
function literalAddresses(hostname: string): readonly string[] {
  const host = hostname.replace(/^\[|\]$/g, "");
  if (isIP(host) !== 0) return [host];
  // RFC 6761: these names always mean the machine itself, for any answer of a resolver.
  return /(^|\.)localhost\.?$/.test(host) ? ["127.0.0.1", "::1"] : [];
}

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** RFC 6052, 2.1: `64:ff9b::/96`, behind which NAT64 reaches IPv4 hosts. */
const translatedPrefixBits = 96;

/** Returns the IPv4 host that NAT64 reaches by an address; undefined for any other address. */
function translatedHost(address: Address): ipaddr.IPv4 | undefined {
  if (address.range() !== "rfc6052") return undefined;
  return new ipaddr.IPv4(address.toByteArray().slice(translatedPrefixBits / 8));
}

function parseAddress(address: string): Address | undefined {
  // ipaddr.js reads the obsolete `::1.2.3.4` as `::ffff:1.2.3.4`, which is another address.
  if (isIP(address) === 0 || /^::\d+\.\d/.test(address)) return undefined;
  // Judges the IPv4 host inside a mapped address, since the connection reaches that host.
  return ipaddr.process(address);
}

/**
 * Returns the kind of a special address; undefined for public unicast. An address for which
 * ipaddr.js has no name is only public in IPv4 and in 2000::/3 (RFC 4291).
 */
function specialKind(address: Address | undefined): string | undefined {
  if (address !== undefined && metadataAddresses.has(address.toString())) return "a cloud metadata address";
  const range = address?.range();
  if (address !== undefined && range === "unicast" && (address.kind() === "ipv4" || isGlobalUnicast(address)))
    return undefined;
  return `a ${(range === undefined ? undefined : commonKinds[range]) ?? "reserved"} address`;
}

/**
 * Public addresses at which a cloud answers its own machines, with secrets. Other such addresses
 * are private or link-local: 169.254.169.254 and 169.254.170.2, fd00:ec2::254 (Amazon),
 * fd20:ce::254 (Google), 100.100.100.200 (Alibaba), 192.0.0.192 (Oracle).
 */
const metadataAddresses: ReadonlySet<string> = new Set([
  // Azure's wire server: certificates and settings of a machine's extensions.
  "168.63.129.16",
]);

/**
 * Common names of ranges. The other ranges are for documentation and tests, or tunnels that can
 * hide a private IPv4 address.
 */
const commonKinds: Readonly<Record<string, string>> = {
  private: "private",
  uniqueLocal: "private",
  carrierGradeNat: "private",
  loopback: "loopback",
  linkLocal: "link-local",
  multicast: "multicast",
};

function isGlobalUnicast(address: Address): boolean {
  return ((address.toByteArray()[0] ?? 0) & 0xe0) === 0x20;
}
