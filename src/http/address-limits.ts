import type { Server } from "node:http";
import type { Socket } from "node:net";
import { setBounded } from "../kit/bounded-map.ts";
import { overloadedError } from "../kit/errors.ts";
import type { Log } from "../telemetry/log.ts";
import { addressBlock, type ClientAddresses } from "./client-address.ts";
import { createCountedReport } from "../kit/counted-report.ts";
import type { ApiMiddleware } from "./state.ts";

/** Blocks the connections of harmful clients. */
export interface ConnectionLimit {
  /**
   * Closes all connections of the socket's address, and new ones for a minute. A trusted proxy
   * carries other clients too, so only the given connection of a proxy is closed.
   *
   * @param reason Action of the client, for the log.
   */
  shutOut(socket: Socket, reason: string): void;
}

const shutOut = { ms: 60_000, mostAddresses: 10_000 };

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
  const open = new Map<string, Set<Socket>>();
  /** End of the block of each address, on the clock of `performance.now()`. */
  const shutOutUntil = new Map<string, number>();
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
    if ((shutOutUntil.get(block) ?? 0) > performance.now()) {
      socket.destroy();
      return;
    }
    const sockets = open.get(block) ?? new Set();
    if (sockets.size >= limit) {
      socket.destroy();
      report(address);
      return;
    }
    open.set(block, sockets.add(socket));
    socket.once("close", () => {
      sockets.delete(socket);
      if (sockets.size === 0) open.delete(block);
    });
  });
  return {
    shutOut(socket, reason) {
      const address = socket.remoteAddress;
      socket.destroy();
      if (address === undefined || addresses.isTrustedProxy(address)) return;
      const block = addressBlock(address);
      setBounded(shutOutUntil, [block, performance.now() + shutOut.ms], shutOut.mostAddresses);
      for (const other of open.get(block) ?? []) other.destroy();
      log?.warn(
        { event: "connections.shut_out", client: address, seconds: shutOut.ms / 1000 },
        `connections closed, and new ones of the address for a minute: ${reason}`,
      );
    },
  };
}

/**
 * Answers 503 to requests beyond `limit` of one forwarded address. The connections do not
 * distinguish such clients, because trusted proxies open them.
 */
export function createForwardedLimit(limit: number, addresses: ClientAddresses): ApiMiddleware {
  /** Number of the requests in flight of each address. */
  const counts = new Map<string, number>();
  return async (ctx, next) => {
    const { clientAddress } = ctx.state;
    const peer = ctx.req.socket.remoteAddress;
    if (clientAddress === undefined || peer === undefined || !addresses.isTrustedProxy(peer)) return next();
    const block = addressBlock(clientAddress);
    const count = counts.get(block) ?? 0;
    if (count >= limit) throw overloadedError();
    counts.set(block, count + 1);
    try {
      await next();
    } finally {
      const left = (counts.get(block) ?? 1) - 1;
      if (left > 0) counts.set(block, left);
      else counts.delete(block);
    }
  };
}
