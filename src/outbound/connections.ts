import type { LookupAddress } from "node:dns";
import { Agent as HttpAgent, type ClientRequestArgs } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import type { LookupFunction } from "node:net";
import { TargetRefusedError } from "./outbound-errors.ts";
import { createSharedLookup, type Asker, type Lookup } from "./shared-lookup.ts";
import type { TargetPolicy } from "./targets.ts";

/** For requests, which name their `asker` beside Node's own options; without one they are user 0's. */
export interface Agents {
  readonly http: HttpAgent;
  readonly https: HttpsAgent;
}

/**
 * How long a connection is kept without work. Long enough for a burst, short enough that thousands of receivers that get
 * one event each do not use up the process's file descriptors. A receiver's own Keep-Alive header can shorten it.
 */
const idleMs = 10_000;

/**
 * What each address of a name gets before the next one is tried. Node's 250 ms gives up on receivers that are merely
 * far away, when they have both an IPv4 and an IPv6 address.
 */
const addressAttemptMs = 2000;

/**
 * Agents that connect to no name but at addresses that the policy allows. Addresses in a URL are not seen here, since Node looks
 * up names only: `send` vets them with the same policy before it asks for a connection.
 *
 * Not `request-filtering-agent`: it has a rule of its own beside the one that subscriptions are saved by, lets through what
 * ipaddr.js calls unicast outside 2000::/3 (`::7f00:1`), refuses a name for one bad address among good ones, and prints a
 * warning for every allowed network of the other address family.
 *
 * @param maxSockets Most connections to one receiver; further requests wait for one, and their deadline runs.
 * @param lookup To be shared with other agents.
 */
export function createAgents({
  policy,
  keepAlive,
  maxSockets,
  lookup = createSharedLookup(),
}: {
  readonly policy: TargetPolicy;
  readonly keepAlive: boolean;
  readonly maxSockets: number;
  readonly lookup?: Lookup;
}): Agents {
  const options = {
    keepAlive,
    maxSockets,
    timeout: idleMs,
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: addressAttemptMs,
  };
  // Said aloud, so that NODE_TLS_REJECT_UNAUTHORIZED cannot turn it off for webhooks.
  const https = new HttpsAgent({ ...options, rejectUnauthorized: true });
  const vet = (asker: Asker): LookupFunction => createVettedLookup({ policy, lookup, asker });
  return { http: withLookup(new HttpAgent(options), vet), https: withLookup(https, vet) };
}

type Connect = (
  options: ClientRequestArgs & { readonly asker?: Asker },
  onCreated?: Parameters<HttpAgent["createConnection"]>[1],
) => ReturnType<HttpAgent["createConnection"]>;

/** Has every connection of an agent look its name up in one way, whatever a request says: an agent's own look-up cannot know the asker. */
function withLookup<T extends HttpAgent | HttpsAgent>(
  agent: T,
  lookupFor: (asker: Asker) => LookupFunction,
): T {
  const connect: Connect = agent.createConnection.bind(agent);
  const connectVetted: Connect = (options, onCreated) => {
    const { asker = { userId: 0, isWaiting: false, isGone: false } } = options;
    return connect({ ...options, lookup: lookupFor(asker) }, onCreated);
  };
  agent.createConnection = connectVetted;
  return agent;
}

/**
 * Looks a name up, and answers only with the addresses that may be connected to, which Node then uses as they are: a name that
 * resolves anew cannot change its mind in between.
 */
function createVettedLookup({
  policy,
  lookup,
  asker,
}: {
  readonly policy: TargetPolicy;
  readonly lookup: Lookup;
  readonly asker: Asker;
}): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, asker, (error, addresses) => {
      if (error !== null) return callback(error, []);
      const allowed = addresses.filter(({ address }) => policy.refusalOf(address) === undefined);
      const first = allowed[0];
      if (first === undefined) return callback(refusal(hostname, addresses, policy), []);
      if (options.all === true) callback(null, allowed);
      else callback(null, first.address, first.family);
    });
  };
}

/** Without the address, which would show subscribers what names mean inside the network. */
function refusal(hostname: string, addresses: readonly LookupAddress[], policy: TargetPolicy): Error {
  const reason = policy.refusalOf(addresses[0]?.address ?? "");
  return new TargetRefusedError(`${hostname} resolves to ${reason ?? "no address"}.`);
}
