import { Router } from "@koa/router";
import type { Middleware, ParameterizedContext } from "koa";
import type { ErrorCode } from "../kit/errors.ts";
import type { Log } from "../telemetry/log.ts";
import type { Caller } from "../kit/caller.ts";
import type { Grant } from "../kit/scopes.ts";

/** What the middleware of every request puts on `ctx.state`. */
export interface RequestState {
  /** From `X-Request-Id`, or made; returned in the same header. */
  requestId: string;
  /** Id of the trace that records the request; undefined when none does. */
  traceId: string | undefined;
  /** Returns a log that carries the request id. */
  log: () => Log;
  /** Address of the sender, in one spelling; behind a trusted proxy the one that it gives. */
  clientAddress: string | undefined;
  /** Gives up its place among the requests at work; undefined without a limit of them. */
  leavePlace: (() => void) | undefined;
  /** Set by authenticate.ts; every route behind the prefix has it. */
  caller: Caller;
  /** Id of the token that the request carries; set with `caller`. Undefined: a JWT. */
  tokenId: number | undefined;
  /** What that token allows; set with `caller`. */
  grant: Grant;
  /** When these three were found, in ms of `performance.now()`. */
  identifiedAt: number;
  /**
   * Finds them again.
   *
   * @throws AppError 401 when the token is no longer valid, or its user is disabled;
   *   `user.forbidden` when it is no admin any more.
   */
  identifyAgain: () => Promise<void>;
  /** What it may take of the process's memory. */
  memory: RequestMemory;
  /** Its place among the requests of its user. */
  turn: Turn;
  /** What the request is about, for its log line: set by the routes that know it. */
  resource: string | undefined;
  recordId: string | undefined;
  /** Code of the error that it was answered with. */
  errorCode: ErrorCode | undefined;
}

/**
 * Counts the bytes that one request may take. Every size estimates what the process holds, not what
 * crosses the wire.
 */
export interface RequestMemory {
  /** What the process has for all requests: what needs more can never be served. */
  readonly mostBytes: number;
  /**
   * Reserves `bytes` for the request instead of what it had. Waits for others to finish when there
   * is no room. Waits too, whatever `bytes` is, while what was held leaves none to what there is.
   *
   * @throws AppError `server.overloaded`, with `Retry-After`, when there is no room after `waitMs`.
   */
  reserve(bytes: number): Promise<void>;
  /**
   * Sets the reservation to `bytes` without waiting: to fewer than before, or to more that the
   * process already holds.
   *
   * @throws AppError `server.overloaded` when there is no room for more.
   */
  settle(bytes: number): void;
  /**
   * Does the same, but counts what there is no room for: the answer to a write that is committed,
   * which is given in any case.
   */
  hold(bytes: number): void;
}

/** A request's place among those of its user that are at work. */
export interface Turn {
  /** Bytes of the body that have come, even if they were then dropped. */
  readBytes: number;
  /**
   * Bytes of the answer that was made, even if it was then refused for lack of memory. So are those
   * of a record of which only the entity tag was needed.
   */
  madeBytes: number;
  /** Runs something that waits for the client, such as reading a slow body, without the place. */
  pause<T>(act: () => Promise<T>): Promise<T>;
}

export type ApiContext = ParameterizedContext<RequestState>;
export type ApiMiddleware = Middleware<RequestState>;
export type ApiRouter = Router<RequestState>;

/**
 * @param routePrefix Prefix of every route; empty for none. Paths are case-sensitive: `/SVC-API` is
 *   not under `/svc-api`.
 */
export function createRouter(routePrefix: string): ApiRouter {
  return new Router<RequestState>({ prefix: routePrefix, sensitive: true });
}
