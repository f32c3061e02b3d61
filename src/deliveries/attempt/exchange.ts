import {
  request as httpRequest,
  type ClientRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type RequestOptions,
} from "node:http";
import { request as httpsRequest } from "node:https";
import type { Socket } from "node:net";
import type { Agents } from "../../outbound/connections.ts";
import { NoTurnError, type Asker } from "../../outbound/shared-lookup.ts";

/** Longer response heads end the connection: Node's default, held against --max-http-header-size. */
const maxHeadBytes = 16 * 1024;
/** Answers may be announced by others (1xx), and a receiver that never stops announcing would keep this process busy. */
const maxInterimAnswers = 16;

/** One delivery request, as it goes over the wire. */
export interface Post {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Sent one part after the other, without a copy. */
  readonly body: readonly Uint8Array[];
}

/** How an exchange came to its end. */
export type Ending =
  /** The whole response was read; the connection can be used again. */
  | { readonly kind: "complete" }
  /** The body was longer than what is read of it; the connection was destroyed. */
  | { readonly kind: "cut" }
  | { readonly kind: "expired"; readonly during: "connect" | "head" | "body" }
  /** Nothing was sent, nor a connection tried: it was not the receiver that took the time. */
  | { readonly kind: "unmade"; readonly waitedFor: "connection" | "look-up" }
  | {
      readonly kind: "broken";
      readonly error: unknown;
      /** The connection was a kept one that the receiver had closed in the meantime: the request did not get there. */
      readonly isStale: boolean;
    };

export interface Exchange {
  readonly ending: Ending;
  /** Undefined when no complete head came. */
  readonly head: { readonly statusCode: number; readonly headers: IncomingHttpHeaders } | undefined;
  /** What was read of the body, at most `maxBodyBytes`. */
  readonly body: Buffer;
}

/** Makes one request over one connection: no redirects, no proxies, and the response's body as it is, compressed or not. Never rejects. */
export function exchange({
  post: { url, headers, body },
  userId,
  agents,
  timeoutMs,
  maxBodyBytes,
}: {
  readonly post: Omit<Post, "url"> & { readonly url: URL };
  readonly userId: number;
  readonly agents: Agents;
  /** For all of it: DNS, connect, TLS, head and body. */
  readonly timeoutMs: number;
  readonly maxBodyBytes: number;
}): Promise<Exchange> {
  return new Promise((resolve) => {
    const asker: Asker = { userId, isWaiting: false, isGone: false };
    const chunks: Buffer[] = [];
    let size = 0;
    let head: Exchange["head"];
    let interimAnswers = 0;
    let bytesReadBefore = 0;
    let isSettled = false;

    const isSecure = url.protocol === "https:";
    const options: RequestOptions & { readonly asker: Asker } = {
      method: "POST",
      // The brackets of an IPv6 address are the URL's, not the address's.
      host: url.hostname.replace(/^\[|\]$/g, ""),
      port: url.port,
      path: url.pathname + url.search,
      agent: isSecure ? agents.https : agents.http,
      headers: { ...headers, "Content-Length": sizeOf(body) },
      maxHeaderSize: maxHeadBytes,
      asker,
    };
    let request: ClientRequest;
    try {
      request = isSecure ? httpsRequest(options) : httpRequest(options);
    } catch (error) {
      // Node finds fault with a header or a path before it connects.
      resolve({ ending: { kind: "broken", error, isStale: false }, head: undefined, body: Buffer.alloc(0) });
      return;
    }

    /** Only the first ending counts. */
    const settle = (ending: Ending): void => {
      if (isSettled) return;
      isSettled = true;
      clearTimeout(timer);
      asker.isGone = true;
      // Also when the answer came before the request was written: who reads no further would keep the connection for ever.
      if (ending.kind !== "complete" || !request.writableFinished) request.destroy();
      resolve({ ending, head, body: Buffer.concat(chunks, Math.min(size, maxBodyBytes)) });
    };
    const expire = (): void => {
      // Node's types do not know of the time before a socket.
      const socket = request.socket as Socket | null | undefined;
      if (socket === null || socket === undefined) settle({ kind: "unmade", waitedFor: "connection" });
      else if (asker.isWaiting) settle({ kind: "unmade", waitedFor: "look-up" });
      else if (head !== undefined) settle({ kind: "expired", during: "body" });
      else settle({ kind: "expired", during: socket.connecting ? "connect" : "head" });
    };
    const fail = (error: unknown): void => {
      if (error instanceof NoTurnError) return settle({ kind: "unmade", waitedFor: "look-up" });
      const isUnanswered = head === undefined && request.socket?.bytesRead === bytesReadBefore;
      settle({
        kind: "broken",
        error,
        isStale: isUnanswered && request.reusedSocket && isClosedConnection(error),
      });
    };
    const read = (response: IncomingMessage): void => {
      head = { statusCode: response.statusCode ?? 0, headers: response.headers };
      response.on("data", (chunk: Buffer) => {
        if (isSettled) return;
        chunks.push(chunk);
        size += chunk.length;
        if (size > maxBodyBytes) settle({ kind: "cut" });
      });
      response.on("end", () => settle({ kind: "complete" }));
      response.on("error", fail);
    };

    const timer = setTimeout(expire, timeoutMs);
    request.on("socket", (socket) => (bytesReadBefore = socket.bytesRead));
    request.on("information", () => {
      if (++interimAnswers > maxInterimAnswers) fail(tooManyInterimAnswers());
    });
    request.on("response", read);
    // An answer like the others, and nothing that a webhook asked for; without a listener Node would drop it without a word.
    request.on("upgrade", ({ statusCode = 0, headers: upgraded }, socket) => {
      head = { statusCode, headers: upgraded };
      socket.destroy();
      settle({ kind: "complete" });
    });
    // Not `once`: an error after the end has to find a listener too.
    request.on("error", fail);
    // In one turn, and so with the head in one packet when they are small.
    for (const part of body) request.write(part);
    request.end();
  });
}

function sizeOf(body: Post["body"]): number {
  return body.reduce((size, part) => size + part.length, 0);
}

function isClosedConnection(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "ECONNRESET" || error.code === "EPIPE");
}

function tooManyInterimAnswers(): Error {
  const code = "ERR_TOO_MANY_INTERIM_ANSWERS";
  return Object.assign(new Error(code), { code });
}
