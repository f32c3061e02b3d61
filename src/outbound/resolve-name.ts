import { promises, type LookupAddress } from "node:dns";
import { isIP } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { codeOf } from "../kit/errors.ts";
import { LookupError } from "./outbound-errors.ts";
import { candidatesOf, createNameFiles, type NameFiles } from "./name-files.ts";

export interface ResolvedName {
  /**
   * At least one address, IPv4 first. A machine without one of the families finds no route and
   * tries the other at once.
   */
  readonly addresses: readonly LookupAddress[];
  /** Time to live of the answer; may be 0. */
  readonly ttlMs: number;
}

/** Looks up a name; rejects with a `LookupError`. */
export type ResolveName = (name: string) => Promise<ResolvedName>;

/**
 * Time until a query is repeated. c-ares doubles it with each round of the servers; `limitMs`
 * limits the whole look-up.
 */
const repeatMs = 1_000;
/**
 * Time for the other address family once one has addresses, because some servers never answer
 * queries for IPv6.
 */
const otherFamilyMs = 500;
/**
 * Limit of the addresses of a family. An attempt waits 2 s for each, so it rarely tries more. A
 * name with 4,000 addresses took 300 KB of the shared look-up, and 35 ms of each connection.
 */
const mostAddresses = 16;
/** Time to live of addresses from a file. */
const fileTtlMs = 1_000;

/**
 * Failures of one server. c-ares, as Node configures it, returns them as the answer; glibc queries
 * the next server.
 */
const serverFailures = ["ESERVFAIL", "ENOTIMP", "EREFUSED"];
/** Failures without an answer, after which the other forms of a name are not tried. */
const silences = ["ETIMEOUT", "ECONNREFUSED", "ECANCELLED"];

/**
 * Resolves names as `getaddrinfo` does, from /etc/hosts and by the search list of /etc/resolv.conf,
 * but without a thread: queries to dead name servers delay nothing else.
 *
 * Each look-up has its own c-ares channel (30 us), for four reasons: only a whole channel can be
 * cancelled; a channel reads the name servers only when it is made, and would not know a restarted
 * DNS; it learns time limits from other answers (nodejs/node#57839); and a new source port each
 * time makes answers harder to forge.
 *
 * Not supported: `LOCALDOMAIN`, `RES_OPTIONS`, and sources of nsswitch.conf other than `files` and
 * `dns`.
 *
 * @param limitMs Limit of a look-up with all its queries.
 * @param servers Name servers instead of those of resolv.conf, with a port after a colon when it is
 *   not 53.
 */
export function createNameResolver({
  limitMs = 5_000,
  servers,
  readFiles = createNameFiles(),
}: {
  readonly limitMs?: number;
  readonly servers?: readonly string[];
  readonly readFiles?: () => Promise<NameFiles>;
} = {}): ResolveName {
  return async (name) => {
    const files = await readFiles();
    const local = localAddresses(name, files);
    if (local.length > 0) return { addresses: local, ttlMs: fileTtlMs };
    const channels = openChannels(servers);
    let isOver = false;
    const timer = setTimeout(() => {
      isOver = true;
      channels.cancel();
    }, limitMs);
    try {
      return await search(channels, name, files);
    } catch (error) {
      throw isOver ? new LookupError("ETIMEOUT") : error;
    } finally {
      clearTimeout(timer);
      channels.cancel();
    }
  };
}

/**
 * Returns the addresses of /etc/hosts. Always returns those of localhost (RFC 6761), for which no
 * name server is queried.
 */
function localAddresses(name: string, { hosts }: NameFiles): readonly LookupAddress[] {
  const bare = name.toLowerCase().replace(/\.$/, "");
  const ofFile = (hosts.get(bare) ?? []).filter((address) => isIP(address) !== 0);
  const isLocalhost = /(^|\.)localhost$/.test(bare);
  const addresses = ofFile.length === 0 && isLocalhost ? ["127.0.0.1", "::1"] : ofFile;
  return addresses.map((address) => ({ address, family: isIP(address) }));
}

/** The channels of one look-up. Each queries all servers, beginning with a different one. */
interface Channels {
  readonly count: number;
  beginningWith(server: number): promises.Resolver;
  /** Ends every query with ECANCELLED. */
  cancel(): void;
}

const openChannel = (): promises.Resolver => new promises.Resolver({ timeout: repeatMs, tries: 4 });

function openChannels(servers: readonly string[] | undefined): Channels {
  const first = openChannel();
  if (servers !== undefined) first.setServers(servers);
  const all = first.getServers();
  const channels = [first];
  return {
    count: all.length,
    beginningWith(server) {
      const known = channels[server];
      if (known !== undefined) return known;
      const channel = openChannel();
      channel.setServers([...all.slice(server), ...all.slice(0, server)]);
      channels[server] = channel;
      return channel;
    },
    cancel() {
      for (const channel of channels) channel.cancel();
    },
  };
}

/**
 * Returns the addresses of the first candidate name that has an address. If all fail, throws the
 * failure of the name as written.
 */
async function search(channels: Channels, name: string, files: NameFiles): Promise<ResolvedName> {
  let failure: LookupError | undefined;
  for (const candidate of candidatesOf(name, files)) {
    const found = await resolve(channels, candidate);
    if (!(found instanceof LookupError)) return found;
    if (silences.includes(found.code)) throw found;
    if (failure === undefined || name.startsWith(candidate)) failure = found;
  }
  throw failure ?? new LookupError("ENOTFOUND");
}

async function resolve(channels: Channels, name: string): Promise<ResolvedName | LookupError> {
  for (let server = 0; ; server++) {
    const found = await ask(channels.beginningWith(server), name);
    const isLast = server + 1 >= channels.count;
    if (!(found instanceof LookupError) || isLast || !serverFailures.includes(found.code)) return found;
  }
}

/** Queries both address families at the same time. */
async function ask(channel: promises.Resolver, name: string): Promise<ResolvedName | LookupError> {
  const found: { readonly address: string; readonly family: 4 | 6; readonly ttl: number }[] = [];
  const codes: string[] = [];
  const questions = ([4, 6] as const).map(async (family) => {
    try {
      const records =
        family === 4
          ? await channel.resolve4(name, { ttl: true })
          : await channel.resolve6(name, { ttl: true });
      for (const { address, ttl } of records.slice(0, mostAddresses)) found.push({ address, family, ttl });
    } catch (error) {
      codes.push(codeOf(error) ?? "EBADRESP");
      throw error;
    }
  });
  const enough = Promise.any(questions).then(() => sleep(otherFamilyMs, undefined, { ref: false }));
  await Promise.race([Promise.allSettled(questions), enough.catch(() => undefined)]);
  if (found.length === 0) return new LookupError(mostTellingCode(codes));
  return {
    addresses: found
      .toSorted((a, b) => a.family - b.family)
      .map(({ address, family }) => ({ address, family })),
    ttlMs: Math.min(...found.map(({ ttl }) => ttl)) * 1_000,
  };
}

/**
 * Returns the most specific code. A missing address of one family means little while the other
 * family is unknown.
 */
function mostTellingCode(codes: readonly string[]): string {
  return codes.find((code) => code !== "ENODATA" && code !== "ENOTFOUND") ?? codes[0] ?? "ENODATA";
}
