import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { buffer } from "node:stream/consumers";

/** One request, as received. */
export interface ReceivedRequest {
  readonly method: string;
  /** Path with the query string. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly rawBody: Buffer;
  readonly receivedAt: Date;
  /** Equal for requests on the same connection. */
  readonly connection: number;
}

export interface Answer {
  /** 200 by default. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: string | Buffer;
  readonly delayMs?: number;
}

/** Handles the response in any way; see `hang`, `dripHead` and the others below. */
export type Behaviour = (request: ReceivedRequest, response: ServerResponse) => void;

/** A webhook receiver on 127.0.0.1 that records all requests. */
export interface TestReceiver {
  /** URL without a trailing slash: `http://127.0.0.1:<port>`. */
  readonly url: string;
  readonly port: number;
  /** Requests in the order of arrival. A request is added before it is answered. */
  readonly received: readonly ReceivedRequest[];
  /** Answer to every later request; 200 without a body at first. */
  answer: Answer | Behaviour;
  /** Returns all requests, once there are at least `count`; rejects after `timeoutMs` (10 s). */
  waitFor(count: number, options?: { readonly timeoutMs?: number }): Promise<readonly ReceivedRequest[]>;
  /** Returns the number of connections that were ever opened. */
  connectionCount(): number;
  /** Returns the number of open connections. */
  openConnections(): number;
  /** Destroys the connections without a request, like a receiver's idle timeout. */
  dropIdleConnections(): void;
  /** Destroys every connection; resolves once the port is free. May be called twice. */
  close(): Promise<void>;
}

/**
 * Starts a receiver, over TLS with a key and a certificate.
 *
 * @param port Default: any free port.
 * @param isForgetful Whether `received` stays empty, for a long load.
 */
export async function startReceiver({
  tls,
  port: wantedPort = 0,
  isForgetful = false,
}: {
  readonly tls?: { readonly key: string; readonly cert: string };
  readonly port?: number;
  readonly isForgetful?: boolean;
} = {}): Promise<TestReceiver> {
  const received: ReceivedRequest[] = [];
  const arrivals = new Set<() => void>();
  const connections = new Map<Socket, number>();
  let opened = 0;

  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const rawBody = await buffer(request);
    const record: ReceivedRequest = {
      method: request.method ?? "",
      path: request.url ?? "",
      headers: request.headers,
      rawBody,
      receivedAt: new Date(),
      connection: connections.get(request.socket) ?? 0,
    };
    if (!isForgetful) received.push(record);
    for (const arrival of arrivals) arrival();
    if (typeof receiver.answer === "function") receiver.answer(record, response);
    else reply(response, receiver.answer);
  };
  const listener = (request: IncomingMessage, response: ServerResponse): void => {
    // A sender that disconnects in the middle of its body is no fault of the receiver.
    handle(request, response).catch(() => response.destroy());
  };
  // Node's idle timeout would close kept connections in the middle of slow tests.
  const options = { keepAliveTimeout: 0, requestTimeout: 0 };
  const server =
    tls === undefined ? createServer(options, listener) : createTlsServer({ ...options, ...tls }, listener);
  server.on(tls === undefined ? "connection" : "secureConnection", (socket: Socket) => {
    connections.set(socket, ++opened);
    socket.on("error", () => {});
    socket.once("close", () => connections.delete(socket));
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(wantedPort, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo;

  const receiver: TestReceiver = {
    url: `${tls === undefined ? "http" : "https"}://127.0.0.1:${port}`,
    port,
    received,
    answer: {},
    waitFor(count, { timeoutMs = 10_000 } = {}) {
      return new Promise((resolve, reject) => {
        const settle = (): void => {
          clearTimeout(timer);
          arrivals.delete(check);
        };
        const check = (): void => {
          if (received.length < count) return;
          settle();
          resolve(received);
        };
        const timer = setTimeout(() => {
          settle();
          reject(new Error(`Waited ${timeoutMs} ms for ${count} requests, got ${received.length}.`));
        }, timeoutMs);
        arrivals.add(check);
        check();
      });
    },
    connectionCount: () => opened,
    openConnections: () => connections.size,
    dropIdleConnections: () => server.closeIdleConnections(),
    close() {
      return new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
        for (const socket of connections.keys()) socket.destroy();
      });
    },
  };
  return receiver;
}

/** Answers one response; for behaviours that decide per request, for example by path. */
export function reply(response: ServerResponse, answer: Answer): void {
  const send = (): void => {
    for (const [name, value] of Object.entries(answer.headers ?? {})) response.setHeader(name, value);
    response.statusCode = answer.status ?? 200;
    response.end(answer.body);
  };
  if (answer.delayMs === undefined) return send();
  const timer = setTimeout(send, answer.delayMs);
  response.once("close", () => clearTimeout(timer));
}

/** Accepts the request and never answers. */
export const hang: Behaviour = () => {};

/** Resets the TCP connection instead of answering. */
export const reset: Behaviour = (_request, response) => {
  response.socket?.resetAndDestroy();
};

/** Sends a status line, and then a header line every `everyMs`, forever. */
export function dripHead(everyMs: number): Behaviour {
  return (_request, response) => {
    response.socket?.write("HTTP/1.1 200 OK\r\n");
    drip(response, everyMs, () => response.socket?.write("X-Drip: 1\r\n"));
  };
}

/** Answers with 200 at once, and then a byte of the body every `everyMs`, forever. */
export function dripBody(everyMs: number): Behaviour {
  return (_request, response) => {
    response.writeHead(200);
    drip(response, everyMs, () => response.write("."));
  };
}

/** Answers with `status` and an endless body, as fast as it is read. */
export function endlessBody(status = 200): Behaviour {
  const chunk = Buffer.alloc(16 * 1024, "a");
  return (_request, response) => {
    response.writeHead(status);
    const pump = (): void => {
      while (!response.destroyed && response.write(chunk));
    };
    response.on("drain", pump);
    pump();
  };
}

/** Redirects the sender. */
export function redirectTo(location: string, status: number): Behaviour {
  return (_request, response) => reply(response, { status, headers: { Location: location } });
}

function drip(response: ServerResponse, everyMs: number, write: () => void): void {
  const timer = setInterval(write, everyMs);
  response.once("close", () => clearInterval(timer));
}
