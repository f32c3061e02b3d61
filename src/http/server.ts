import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { OperatorError, messageOf } from "../errors.ts";

export interface HttpServer {
  /** The port it listens on, also when 0 was asked for. */
  readonly port: number;
  /**
   * Stops accepting, lets requests at work finish, then ends what is left after `limitMs` (default 10 s).
   * Resolves when every connection is gone.
   */
  close(options?: { readonly limitMs?: number }): Promise<void>;
}

const limits = {
  /** Slow senders hold a connection no longer than this. Both bounds are checked every `connectionsCheckingInterval`. */
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  connectionsCheckingInterval: 5000,
  /** Longer than the 60 s that proxies keep idle connections, so that a proxy never writes into one just closed here. */
  keepAliveTimeout: 65_000,
  /** Bytes; bounds the URL too, and with it the search term. */
  maxHeaderSize: 16 * 1024,
};

/**
 * Listens with limits on slow and large requests. Port 0 takes a free one.
 *
 * @param setting What to change when the port cannot be had, for the message.
 * @throws OperatorError when the address cannot be had.
 */
export async function startServer(
  listener: (request: IncomingMessage, response: ServerResponse) => unknown,
  { host, port, setting }: { readonly host: string; readonly port: number; readonly setting?: string },
): Promise<HttpServer> {
  const server = createServer(limits, listener);
  await new Promise<void>((resolve, reject) => {
    // For good: later errors are connections that could not be accepted, and must not end the process.
    server.on("error", (error) => {
      const hint = setting === undefined ? "" : ` (${setting})`;
      const isTaken = "code" in error && error.code === "EADDRINUSE";
      const reason = isTaken ? "another program listens there" : messageOf(error);
      reject(new OperatorError(`Cannot listen on ${host}:${port}${hint}: ${reason}`, { cause: error }));
    });
    server.listen(port, host, resolve);
  });
  const address = server.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : port,
    close: ({ limitMs = 10_000 } = {}) => drain(server, limitMs),
  };
}

async function drain(server: Server, limitMs: number): Promise<void> {
  // A connection whose last answer goes out while draining turns idle only later.
  const sweep = setInterval(() => server.closeIdleConnections(), 50);
  const deadline = setTimeout(() => server.closeAllConnections(), limitMs);
  try {
    await new Promise<void>((resolve) => server.close(() => resolve()));
  } finally {
    clearInterval(sweep);
    clearTimeout(deadline);
  }
}
