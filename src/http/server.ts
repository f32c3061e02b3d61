import { createServer, type Server } from "node:http";
import type { Socket, Server as NetServer } from "node:net";
import { codeOf, OperatorError, messageOf } from "../kit/errors.ts";
import type { Log } from "../telemetry/log.ts";
import { addAcceptors } from "./acceptors.ts";
import { limitConnections } from "./address-limits.ts";
import { createClientAddresses, type ClientAddresses } from "./client-address.ts";
import { createCountedReport } from "../kit/counted-report.ts";
import { createInOrder, type InOrder, type Listener } from "./in-order.ts";
import { answerClientErrors } from "./refusal.ts";
import { joinSmallChunks } from "./small-chunks.ts";

export interface HttpServer {
  /** The port in use, also when the given port was 0. */
  readonly port: number;
  /**
   * Stops accepting, lets requests in flight finish, then ends the others after `limitMs` (default
   * 10 s). Resolves when every connection is closed.
   */
  close(options?: { readonly limitMs?: number }): Promise<void>;
}

/** Limits of every connection, in ms and bytes. */
const limits = {
  /**
   * Limits how long slow senders hold a connection. Both are checked every
   * `connectionsCheckingInterval`.
   */
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  connectionsCheckingInterval: 5000,
  /**
   * Exceeds the 60 s for which proxies keep idle connections. Otherwise a proxy may write into a
   * connection that was just closed here.
   */
  keepAliveTimeout: 65_000,
  /** Limits the URL too, and with it the search term. */
  maxHeaderSize: 16 * 1024,
  /**
   * Time without a byte in either direction, above all of clients that do not read their answer.
   */
  stallTimeout: 60_000,
  /**
   * Limits a request from its head to the last byte of its answer. Some clients read a byte a
   * minute.
   */
  exchangeTimeout: 300_000,
};

/** Default limit of connections, for ports that only the operator's own clients call. */
const fewConnections = 1000;

/** Names of the settings of a listen address. */
interface AddressSettings {
  readonly host: string;
  readonly port: string;
}

/**
 * Starts a server with limits on slow, large and malformed requests, and on connections. Port 0
 * takes a free port. The requests on one connection have no limit: a client beyond it would get an
 * error although a new connection would work.
 *
 * @param settings Settings of host and port, for the message when the address is not available.
 * @param log Log of the requests that never reach the listener.
 * @param countRefused Called with the status of each of these requests.
 * @param acceptors Number of new connections that are accepted in one turn of the event loop.
 * @param changes For tests: other limits.
 * @throws OperatorError when the address is not available.
 */
export async function startServer(
  listener: Listener,
  {
    host,
    port,
    settings,
    log,
    countRefused,
    acceptors: acceptorCount = 1,
    maxConnections = fewConnections,
    maxConnectionsPerAddress = maxConnections,
    trustedProxies = [],
    changes = {},
  }: {
    readonly host: string;
    readonly port: number;
    readonly settings?: AddressSettings;
    readonly log?: Log;
    readonly countRefused?: (status: number) => void;
    readonly acceptors?: number;
    readonly maxConnections?: number;
    readonly maxConnectionsPerAddress?: number;
    /** CIDRs of proxies that may open any number of connections, and have many requests wait. */
    readonly trustedProxies?: readonly string[];
    readonly changes?: Partial<typeof limits>;
  },
): Promise<HttpServer> {
  const { stallTimeout, exchangeTimeout, ...options } = { ...limits, ...changes };
  const addresses = createClientAddresses(trustedProxies);
  const inOrder = bounded(listener, exchangeTimeout, addresses);
  const listen: Listener = (request, response) => {
    const onFlood = (): void => connections.shutOut(request.socket, "a body came in tiny chunks");
    joinSmallChunks(request, { onFlood });
    inOrder.begin(request, response);
  };
  // The listener refuses a request without a host (app.ts), with an error body.
  const server = createServer({ ...options, requireHostHeader: false }, listen);
  server.timeout = stallTimeout;
  server.on("connection", (socket: Socket) => inOrder.watch(socket));
  // The listener asks for the body when it needs it (body.ts). A client that is refused earlier
  // does not send it.
  server.on("checkContinue", listen);
  // RFC 9110, 10.1.1: other expectations may be ignored.
  server.on("checkExpectation", listen);
  answerClientErrors(server, { log, countRefused, maxHeaderSize: options.maxHeaderSize });
  const connections = limitConnections(server, { limit: maxConnectionsPerAddress, addresses, log });
  const open = limitAll(server, { limit: maxConnections, log });
  await new Promise<void>((resolve, reject) => {
    // The listener stays: later errors are connections that could not be accepted, and must not end
    // the process.
    server.on("error", (error) => {
      reject(listenFault(error, { host, port, settings }));
    });
    server.listen(port, host, resolve);
  });
  const acceptors = acceptorCount > 1 ? await addAcceptors(server, { count: acceptorCount - 1, log }) : [];
  const address = server.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : port,
    close: ({ limitMs = 10_000 } = {}) => drain(server, acceptors, open, limitMs),
  };
}

function listenFault(
  error: Error,
  { host, port, settings }: { host: string; port: number; settings: AddressSettings | undefined },
): OperatorError {
  const code = codeOf(error);
  const isTaken = code === "EADDRINUSE";
  // EACCES: the port is below 1024. Every other error is about the host.
  const setting = isTaken || code === "EACCES" ? settings?.port : settings?.host;
  const hint = setting === undefined ? "" : ` (${setting})`;
  const reason = isTaken ? "another program listens there" : messageOf(error);
  return new OperatorError(`Cannot listen on ${host}:${port}${hint}: ${reason}`, { cause: error });
}

/**
 * Ends an exchange that takes too long as a whole, whichever side is slow. The next exchange of its
 * connection begins afterwards.
 */
function bounded(listener: Listener, limitMs: number, addresses: ClientAddresses): InOrder {
  const inOrder = createInOrder((request, response) => {
    const { socket } = request;
    const deadline = setTimeout(() => socket.destroy(), limitMs);
    response.once("close", () => {
      clearTimeout(deadline);
      // Otherwise Node.js would read the rest of a body of any length, and drop it chunk by chunk.
      if (!request.complete && request.headers["transfer-encoding"] !== undefined) socket.destroySoon();
      inOrder.next(socket);
    });
    listener(request, response);
  }, addresses);
  return inOrder;
}

/**
 * Closes connections beyond `limit`, whichever handle accepted them. Returns the open connections.
 */
function limitAll(
  server: Server,
  { limit, log }: { readonly limit: number; readonly log: Log | undefined },
): ReadonlySet<Socket> {
  const report = createCountedReport<void>((dropped) =>
    log?.warn(
      { event: "connections.dropped", dropped, maxConnections: limit },
      "connections closed: there are too many",
    ),
  );
  const open = new Set<Socket>();
  server.prependListener("connection", (socket: Socket) => {
    if (open.size >= limit) {
      socket.destroy();
      report();
      return;
    }
    open.add(socket);
    socket.once("close", () => open.delete(socket));
  });
  return open;
}

async function drain(
  server: Server,
  acceptors: readonly NetServer[],
  open: ReadonlySet<Socket>,
  limitMs: number,
): Promise<void> {
  let turns = 0;
  // A connection whose last answer is sent during the drain becomes idle only later.
  const sweep = setInterval(() => {
    server.closeIdleConnections();
    turns += 1;
    // Node.js does not close a connection that was opened ahead and never used. Within the first
    // second, the request of a new connection may still come.
    for (const socket of open) if (turns > 20 && socket.bytesRead === 0) socket.destroy();
  }, 50);
  const deadline = setTimeout(() => server.closeAllConnections(), limitMs);
  try {
    await Promise.all(
      [server, ...acceptors].map((one) => new Promise<void>((resolve) => one.close(() => resolve()))),
    );
  } finally {
    clearInterval(sweep);
    clearTimeout(deadline);
  }
}
