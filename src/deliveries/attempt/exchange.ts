import {
  request as httpRequest,
  type ClientRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type RequestOptions,
} from "node:http";
import { request as httpsRequest } from "node:https";
import type { Socket } from "node:net";
import { performance } from "node:perf_hooks";
import { codeOf } from "../../kit/errors.ts";
import type { AttemptTimings } from "../delivery.ts";
import type { Agents } from "../../outbound/connections.ts";
import { sizeOf } from "./body.ts";
import { NoTurnError } from "../../outbound/outbound-errors.ts";
import type { Asker, ConnectionTimes } from "../../outbound/shared-lookup.ts";

/**
 * Most bytes of a response head: Node's default, set here so that `--max-http-header-size` cannot
 * change it.
 */
const maxHeadBytes = 16 * 1024;
/** Most 1xx answers. A receiver that never stops sending them would keep this process busy. */
const maxInterimAnswers = 16;

/**
 * Beyond this number of chunks, the chunks of a body must have this many bytes on average. Each
 * takes 2 us, at any size.
 */
const leastChunks = { count: 256, bytes: 16 };

/** A delivery request as sent to the receiver. */
export interface Post {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Parts that are sent one after the other, without a copy. */
  readonly body: readonly Uint8Array[];
}

type ExchangeResult =
  /** The whole response was read; the connection can be used again. */
  | { readonly kind: "complete" }
  /** The body exceeded `maxBodyBytes` or came in tiny chunks; the connection was destroyed. */
  | { readonly kind: "cut" }
  | { readonly kind: "expired"; readonly during: "connect" | "head" | "body" }
  /** No connection was tried and nothing was sent: the delay was not caused by the receiver. */
  | { readonly kind: "unmade"; readonly waitedFor: "connection" | NoTurnError["waitedFor"] }
  | {
      readonly kind: "broken";
      readonly error: unknown;
      /** The receiver had closed the kept connection before: the request did not reach it. */
      readonly isStale: boolean;
    };

/** The result of one request. */
export interface Exchange {
  readonly ending: ExchangeResult;
  /** Head of the response; undefined when no complete head came. */
  readonly head: { readonly statusCode: number; readonly headers: IncomingHttpHeaders } | undefined;
  /** The part of the body that was read, at most `maxBodyBytes`. */
  readonly body: Buffer;
  readonly timings: AttemptTimings;
}

export interface ExchangeOptions {
  readonly post: Omit<Post, "url"> & { readonly url: URL };
  readonly userId: number;
  readonly agents: Agents;
  /** Time limit of the whole exchange: DNS, connect, TLS, head and body. */
  readonly timeoutMs: number;
  readonly maxBodyBytes: number;
}

/** One exchange from its request to its ending. */
interface Progress {
  readonly request: ClientRequest;
  readonly asker: Asker;
  readonly maxBodyBytes: number;
  readonly resolve: (exchange: Exchange) => void;
  readonly timer: NodeJS.Timeout;
  readonly chunks: Buffer[];
  size: number;
  head: Exchange["head"];
  response: IncomingMessage | undefined;
  readonly beganAt: number;
  headAt: number | undefined;
  /** Read early: a closed socket has no address any more. */
  address: string | undefined;
  interimAnswers: number;
  /** Bytes that the connection had read before this request. */
  bytesReadBefore: number;
  isSettled: boolean;
}

/**
 * Makes one request over one connection: no redirects, no proxies, and no decompression of the
 * response body. Never rejects.
 */
export function exchange({
  post,
  userId,
  agents,
  timeoutMs,
  maxBodyBytes,
}: ExchangeOptions): Promise<Exchange> {
  return new Promise((resolve) => {
    const asker: Asker = { userId, isWaiting: false, isGone: false };
    let request: ClientRequest;
    try {
      request = openRequest(post, agents, asker);
    } catch (error) {
      // Node throws for a header or a path that it refuses, before it connects.
      resolve({
        ending: { kind: "broken", error, isStale: false },
        head: undefined,
        body: Buffer.alloc(0),
        timings: {},
      });
      return;
    }
    const progress: Progress = {
      request,
      asker,
      maxBodyBytes,
      resolve,
      timer: setTimeout(() => expire(progress), timeoutMs),
      chunks: [],
      size: 0,
      head: undefined,
      response: undefined,
      beganAt: performance.now(),
      headAt: undefined,
      address: undefined,
      interimAnswers: 0,
      bytesReadBefore: 0,
      isSettled: false,
    };
    listen(progress);
    // Written in one turn, so that a small body goes out in the same packet as the head.
    for (const part of post.body) request.write(part);
    request.end();
  });
}

function openRequest(
  { url, headers, body }: ExchangeOptions["post"],
  agents: Agents,
  asker: Asker,
): ClientRequest {
  const isSecure = url.protocol === "https:";
  const options: RequestOptions & { readonly asker: Asker } = {
    method: "POST",
    // Removes the brackets that a URL has around an IPv6 address.
    host: url.hostname.replace(/^\[|\]$/g, ""),
    port: url.port,
    path: url.pathname + url.search,
    agent: isSecure ? agents.https : agents.http,
    headers: { ...headers, "Content-Length": sizeOf(body) },
    maxHeaderSize: maxHeadBytes,
    asker,
  };
  return isSecure ? httpsRequest(options) : httpRequest(options);
}

function listen(progress: Progress): void {
  const { request } = progress;
  request.on("socket", (socket) => {
    progress.bytesReadBefore = socket.bytesRead;
    progress.address = socket.remoteAddress;
    if (progress.address === undefined)
      socket.once("connect", () => (progress.address = socket.remoteAddress));
  });
  request.on("information", () => {
    progress.interimAnswers += 1;
    if (progress.interimAnswers > maxInterimAnswers) fail(progress, tooManyInterimAnswers());
  });
  request.on("response", (response) => read(progress, response));
  // An upgrade counts as an answer. Without a listener Node would drop it.
  request.on("upgrade", ({ statusCode = 0, headers }, socket) => {
    progress.head = { statusCode, headers };
    progress.headAt = performance.now();
    socket.destroy();
    settle(progress, { kind: "complete" });
  });
  // Does not use `once`, because an error after the end needs a listener too.
  request.on("error", (error) => fail(progress, error));
}

function read(progress: Progress, response: IncomingMessage): void {
  progress.head = { statusCode: response.statusCode ?? 0, headers: response.headers };
  progress.response = response;
  progress.headAt = performance.now();
  response.on("data", (chunk: Buffer) => {
    if (progress.isSettled) return;
    progress.chunks.push(chunk);
    progress.size += chunk.length;
    const { length } = progress.chunks;
    const isDripping = length > leastChunks.count && progress.size < length * leastChunks.bytes;
    if (isDripping || progress.size > progress.maxBodyBytes) settle(progress, { kind: "cut" });
  });
  response.on("end", () => settle(progress, { kind: "complete" }));
  response.on("error", (error) => fail(progress, error));
}

function expire(progress: Progress): void {
  // Node's types leave out that a request has no socket at first.
  const socket = progress.request.socket as Socket | null | undefined;
  if (socket === null || socket === undefined) settle(progress, { kind: "unmade", waitedFor: "connection" });
  else if (progress.asker.isWaiting) settle(progress, { kind: "unmade", waitedFor: "look-up" });
  else if (progress.head !== undefined) settle(progress, { kind: "expired", during: "body" });
  else settle(progress, { kind: "expired", during: socket.connecting ? "connect" : "head" });
}

function fail(progress: Progress, error: unknown): void {
  const { request, head, response, bytesReadBefore } = progress;
  // The error may be about bytes after a complete answer, such as a body after a 204. The end of
  // the answer is still to be read.
  if (response?.complete === true) return;
  if (error instanceof NoTurnError) return settle(progress, { kind: "unmade", waitedFor: error.waitedFor });
  const isUnanswered = head === undefined && request.socket?.bytesRead === bytesReadBefore;
  const isStale = isUnanswered && request.reusedSocket && isClosedConnection(error);
  settle(progress, { kind: "broken", error, isStale });
}

/** Ends the exchange. Only the first ending counts. */
function settle(progress: Progress, ending: ExchangeResult): void {
  if (progress.isSettled) return;
  progress.isSettled = true;
  const { request, asker, timer, head, chunks, size, maxBodyBytes, resolve } = progress;
  clearTimeout(timer);
  asker.isGone = true;
  // Also destroys the request when the answer came before the request was written. A receiver that
  // stops reading would otherwise keep the connection forever.
  if (ending.kind !== "complete" || !request.writableFinished) request.destroy();
  const body = Buffer.concat(chunks, Math.min(size, maxBodyBytes));
  resolve({ ending, head, body, timings: timingsOf(progress) });
}

function timingsOf({ asker, address, beganAt, headAt }: Progress): AttemptTimings {
  const firstByteMs = between(beganAt, headAt);
  return { address, firstByteMs, ...(asker.connection && connectionTimings(asker.connection)) };
}

function connectionTimings({ beganAt, lookedUpAt, connectedAt, securedAt }: ConnectionTimes): AttemptTimings {
  return {
    dnsMs: between(beganAt, lookedUpAt),
    connectMs: between(lookedUpAt ?? beganAt, connectedAt),
    tlsMs: between(connectedAt, securedAt),
  };
}

function between(from: number | undefined, to: number | undefined): number | undefined {
  return from === undefined || to === undefined ? undefined : Math.round(to - from);
}

function isClosedConnection(error: unknown): boolean {
  return ["ECONNRESET", "EPIPE"].includes(codeOf(error) ?? "");
}

function tooManyInterimAnswers(): Error {
  const code = "ERR_TOO_MANY_INTERIM_ANSWERS";
  return Object.assign(new Error(code), { code });
}
