import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { buffer } from "node:stream/consumers";

/** One request, as its bytes arrived. */
export interface ReceivedRequest {
  readonly method: string;
  /** With the query string. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly rawBody: Buffer;
  readonly receivedAt: Date;
  /** The same number for requests that came over the same connection. */
  readonly connection: number;
}

export interface Answer {
  /** 200 by default. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: string | Buffer;
  readonly delayMs?: number;
}

/** Does with the response whatever it likes; see `hang`, `dripHead` and the others below. */
export type Behaviour = (request: ReceivedRequest, response: ServerResponse) => void;

/** A webhook receiver on 127.0.0.1 that remembers everything that it is sent. */
export interface TestReceiver {
  /** Without a trailing slash: `http://127.0.0.1:<port>`. */
  readonly url: string;
  readonly port: number;
  /** In the order of arrival; a request is here before it is answered. */
  readonly received: readonly ReceivedRequest[];
  /** What every request from now on is answered with; 200 and no body at first. */
  answer: Answer | Behaviour;
  /** All requests, once there are at least `count`; rejects after `timeoutMs` (10 s). */
  waitFor(count: number, options?: { readonly timeoutMs?: number }): Promise<readonly ReceivedRequest[]>;
  /** How many connections were ever opened. */
  connectionCount(): number;
  /** How many are open. */
  openConnections(): number;
  /**
   * Destroys the connections that no request is using or waiting on: what a receiver's idle timeout
   * does.
   */
  dropIdleConnections(): void;
  /** Destroys every connection; resolves once the port is free. May be called twice. */
  close(): Promise<void>;
}

/**
 * Starts a receiver, over TLS when a key and a certificate are given.
 *
 * @param port Default: any that is free.
 * @param isForgetful Keeps nothing in `received`, for a load that goes on for long.
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
    // A sender that goes away in the middle of its own body is no fault of the receiver.
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

/** Answers one response; for behaviours that decide per request, by path for example. */
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

/** Takes the request and never answers. */
export const hang: Behaviour = () => {};

/** Breaks the connection with a TCP reset instead of an answer. */
export const reset: Behaviour = (_request, response) => {
  response.socket?.resetAndDestroy();
};

/** Sends a status line, and then a header line every `everyMs`, for ever. */
export function dripHead(everyMs: number): Behaviour {
  return (_request, response) => {
    response.socket?.write("HTTP/1.1 200 OK\r\n");
    drip(response, everyMs, () => response.socket?.write("X-Drip: 1\r\n"));
  };
}

/** Answers with `status` at once, and then a byte of the body every `everyMs`, for ever. */
export function dripBody(everyMs: number, status = 200): Behaviour {
  return (_request, response) => {
    response.writeHead(status);
    drip(response, everyMs, () => response.write("."));
  };
}

/** Answers with `status` and a body that never ends, as fast as the other side reads it. */
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

/** Sends the sender somewhere else. */
export function redirectTo(location: string, status = 307): Behaviour {
  return (_request, response) => reply(response, { status, headers: { Location: location } });
}

function drip(response: ServerResponse, everyMs: number, write: () => void): void {
  const timer = setInterval(write, everyMs);
  response.once("close", () => clearInterval(timer));
}
