import type { Server } from "node:http";
import type { Socket } from "node:net";
import { addCount } from "../kit/add-count.ts";
import { setBounded } from "../kit/bounded-map.ts";
import { overloadedError } from "../kit/errors.ts";
import type { Log } from "../telemetry/log.ts";
import { addressBlock, wideBlock, type ClientAddresses } from "./client-address.ts";
import { createCountedReport } from "../kit/counted-report.ts";
import type { ApiMiddleware } from "./state.ts";

/** Blocks the connections of harmful clients. */
export interface ConnectionLimit {
  /**
   * Closes the connections of the socket's address, and new ones for a minute. Leaves open
   * connections of other users, because many may share an address. A trusted proxy carries other
   * clients too, so only the given connection of a proxy is closed.
   *
   * @param reason Action of the client, for the log.
   */
  shutOut(socket: Socket, reason: string): void;
}

/** After `networks` of an IPv6 /48, which has 65,536, the whole /48 is shut out. */
const shutOut = { ms: 60_000, mostAddresses: 10_000, networks: 4 };

/** User of the last authenticated request of each connection. */
const users = new WeakMap<Socket, number>();

/** Records the user of the last authenticated request of a connection. */
export function noteUser(socket: Socket, userId: number): void {
  users.set(socket, userId);
}

/**
 * Limit of an IPv6 /48, as a multiple of the limit of an address. Otherwise a client could take all
 * connections of the server from five of the 65,536 networks of its /48.
 */
const wideTimes = 2;

/** Counts by address. Returns a function that reduces the count; undefined beyond the limit. */
type TakePlace = (address: string) => (() => void) | undefined;

function createPlaces(limit: number): TakePlace {
  const counts = new Map<string, number>();
  return (address) => {
    const [block, wide] = [addressBlock(address), wideBlock(address)];
    if ((counts.get(block) ?? 0) >= limit) return undefined;
    if (wide !== undefined && (counts.get(wide) ?? 0) >= wideTimes * limit) return undefined;
    const blocks = wide === undefined ? [block] : [block, wide];
    for (const one of blocks) addCount(counts, one, 1);
    return () => {
      for (const one of blocks) addCount(counts, one, -1);
    };
  };
}

/**
 * Closes connections beyond `limit` of one address at once, so that no client takes all that the
 * server has (`maxConnections`). A trusted proxy may open any number, since it carries the requests
 * of many clients.
 */
export function limitConnections(
  server: Server,
  {
    limit,
    addresses,
    log,
  }: { readonly limit: number; readonly addresses: ClientAddresses; readonly log: Log | undefined },
): ConnectionLimit {
  const takePlace = createPlaces(limit);
  /** The open connections, with their addresses. */
  const open = new Map<Socket, string>();
  /** End of the block of each address, on the clock of `performance.now()`. */
  const shutOutUntil = new Map<string, number>();
  const isShutOut = (block: string): boolean => (shutOutUntil.get(block) ?? 0) > performance.now();
  const shut = (block: string): void =>
    setBounded(shutOutUntil, [block, performance.now() + shutOut.ms], shutOut.mostAddresses);
  const report = createCountedReport((refused, client: string) =>
    log?.warn(
      { event: "connections.refused", refused, client, limit },
      "connections closed: the address has too many (http.maxConnectionsPerAddress)",
    ),
  );
  server.prependListener("connection", (socket: Socket) => {
    const address = socket.remoteAddress;
    // The connection is already closed.
    if (address === undefined) return;
    if (addresses.isTrustedProxy(address)) return;
    const block = addressBlock(address);
    if (isShutOut(block) || isShutOut(wideBlock(address) ?? "")) {
      socket.destroy();
      return;
    }
    const leavePlace = takePlace(address);
    if (leavePlace === undefined) {
      socket.destroy();
      report(address);
      return;
    }
    open.set(socket, block);
    socket.once("close", () => {
      leavePlace();
      open.delete(socket);
    });
  });
  return {
    shutOut(socket, reason) {
      const address = socket.remoteAddress;
      socket.destroy();
      if (address === undefined || addresses.isTrustedProxy(address)) return;
      const block = addressBlock(address);
      shut(block);
      const wide = wideBlock(address);
      const networks = [...shutOutUntil.keys()].filter((one) => isWithin(one, wide) && isShutOut(one));
      const isWide = networks.length >= shutOut.networks;
      if (isWide && wide !== undefined) shut(wide);
      const user = users.get(socket);
      for (const [other, its] of open) {
        const isOfAnother = users.has(other) && users.get(other) !== user;
        if ((its === block || (isWide && isWithin(its, wide))) && !isOfAnother) other.destroy();
      }
      log?.warn(
        { event: "connections.shut_out", client: address, seconds: shutOut.ms / 1000 },
        `connections closed, and new ones of the address for a minute: ${reason}`,
      );
    },
  };
}

/** Returns whether a block is of the /48, or the /48 itself. */
function isWithin(block: string, wide: string | undefined): boolean {
  return wide !== undefined && block.startsWith(`${wide.split("::")[0]}:`);
}

/**
 * Answers 503 to requests beyond `limit` of one forwarded address. The connections do not
 * distinguish such clients, because trusted proxies open them.
 */
export function createForwardedLimit(limit: number, addresses: ClientAddresses): ApiMiddleware {
  const takePlace = createPlaces(limit);
  return async (ctx, next) => {
    const { clientAddress } = ctx.state;
    const peer = ctx.req.socket.remoteAddress;
    if (clientAddress === undefined || peer === undefined || !addresses.isTrustedProxy(peer)) return next();
    const leavePlace = takePlace(clientAddress);
    if (leavePlace === undefined) throw overloadedError();
    try {
      await next();
    } finally {
      leavePlace();
    }
  };
}
