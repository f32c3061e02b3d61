import { constants } from "node:crypto";
import type { LookupAddress } from "node:dns";
import { Agent as HttpAgent, type ClientRequestArgs } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import type { LookupFunction } from "node:net";
import { performance } from "node:perf_hooks";
import type { Duplex } from "node:stream";
import { DEFAULT_CIPHERS } from "node:tls";
import type { HandshakeRests } from "./handshake-rests.ts";
import { TargetRefusedError } from "./outbound-errors.ts";
import type { Asker, AddressLookup, ConnectionTimes } from "./shared-lookup.ts";
import { sliceReads } from "./sliced-reads.ts";
import type { TargetPolicy } from "./targets.ts";

/** Agents for requests that name their `asker` in the options. The default asker is user 0. */
export interface Agents {
  readonly http: HttpAgent;
  readonly https: HttpsAgent;
}

/**
 * Time that an idle connection is kept, long enough for a burst. Thousands of receivers with one
 * event each must not use up the file descriptors. A receiver's Keep-Alive header can shorten it.
 */
const idleMs = 10_000;

/**
 * Time for each address of a name before the next one is tried. Node's 250 ms is too short for far
 * receivers that have both an IPv4 and an IPv6 address.
 */
const addressAttemptMs = 2000;

/**
 * Leaves out key exchanges over finite fields, whose size the receiver chooses. A field of 8192
 * bits took 300 ms of the thread that sends the webhooks of all users. A curve takes 1 ms. Leaves
 * out renegotiation, in which a receiver can send other, costly certificates.
 */
const handshakes = {
  ciphers: `${DEFAULT_CIPHERS}:!DHE`,
  ecdhCurve: "X25519:P-256:P-384:P-521",
  secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
};

/**
 * Creates agents that connect only to addresses which the policy allows. Node looks up names only,
 * so `send` vets addresses in URLs with the same policy first.
 *
 * `request-filtering-agent` is not used, for four reasons. Its rule differs from that for saved
 * subscriptions. It allows addresses outside 2000::/3 that ipaddr.js calls unicast (`::7f00:1`). It
 * refuses a name for one bad address among good ones. It prints a warning for every allowed network
 * of the other address family.
 *
 * @param maxSockets Most connections to one receiver; later requests wait while their deadline
 *   runs.
 * @param lookup Look-up, which may be shared with other agents.
 * @param rests Rests of users after costly handshakes. Default: none.
 */
export function createAgents({
  policy,
  keepAlive,
  maxSockets,
  lookup,
  rests,
}: {
  readonly policy: TargetPolicy;
  readonly keepAlive: boolean;
  readonly maxSockets: number;
  readonly lookup: AddressLookup;
  readonly rests?: HandshakeRests;
}): Agents {
  const options = {
    keepAlive,
    maxSockets,
    timeout: idleMs,
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: addressAttemptMs,
  };
  // Set explicitly, so that NODE_TLS_REJECT_UNAUTHORIZED cannot turn verification off for webhooks.
  const https = new HttpsAgent({ ...options, ...handshakes, rejectUnauthorized: true });
  const vet = (asker: Asker): LookupFunction => vettedLookup(policy, lookup, asker);
  return { http: withLookup(new HttpAgent(options), vet), https: withLookup(https, vet, rests) };
}

type Connect = (
  options: ClientRequestArgs & { readonly asker?: Asker },
  onCreated?: Parameters<HttpAgent["createConnection"]>[1],
) => ReturnType<HttpAgent["createConnection"]>;

/**
 * Makes every connection of an agent use this look-up. An agent's own `lookup` option does not know
 * the asker.
 */
function withLookup<T extends HttpAgent | HttpsAgent>(
  agent: T,
  lookupFor: (asker: Asker) => LookupFunction,
  rests?: HandshakeRests,
): T {
  const connect: Connect = agent.createConnection.bind(agent);
  const connectVetted: Connect = (options, onCreated) => {
    const { asker = { userId: 0, isWaiting: false, isGone: false } } = options;
    const socket = connect({ ...options, lookup: lookupFor(asker) }, onCreated);
    if (socket) {
      recordTimes(socket, asker);
      sliceReads(socket);
      rests?.watch(asker.userId, socket);
    }
    return socket;
  };
  agent.createConnection = connectVetted;
  return agent;
}

/** Records when the phases of the asker's new connection end. */
function recordTimes(socket: Duplex, asker: Asker): void {
  const times: ConnectionTimes = { beganAt: performance.now() };
  asker.connection = times;
  socket.once("lookup", () => (times.lookedUpAt = performance.now()));
  socket.once("connect", () => (times.connectedAt = performance.now()));
  socket.once("secureConnect", () => (times.securedAt = performance.now()));
}

/**
 * Creates the look-up of a request, which returns only the addresses that the policy allows. Node
 * connects to these without another look-up, so a second answer cannot differ.
 */
function vettedLookup(policy: TargetPolicy, lookup: AddressLookup, asker: Asker): LookupFunction {
  return (hostname, options, callback) =>
    lookup(hostname, asker, (error, addresses) => {
      if (error !== null) return callback(error, []);
      const allowed = addresses.filter(({ address }) => policy.refusalOf(address) === undefined);
      const [first] = allowed;
      if (first === undefined) return callback(refusal(hostname, addresses, policy), []);
      // Asks for one when Node.js runs with `--no-network-family-autoselection`.
      if (options.all === true) callback(null, allowed);
      else callback(null, first.address, first.family);
    });
}

/**
 * Returns the error of a refused name. The message leaves out the address, which would show
 * subscribers how names resolve inside the network.
 */
function refusal(hostname: string, addresses: readonly LookupAddress[], policy: TargetPolicy): Error {
  const reason = policy.refusalOf(addresses[0]?.address ?? "");
  return new TargetRefusedError(`${hostname} resolves to ${reason ?? "no address"}.`);
}
