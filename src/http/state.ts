import { Router } from "@koa/router";
import type { Middleware, ParameterizedContext } from "koa";
import type { ErrorCode } from "../kit/errors.ts";
import type { Log } from "../telemetry/log.ts";
import type { Caller } from "../kit/caller.ts";
import type { Grant } from "../kit/scopes.ts";

/** State of a request, which the middleware puts on `ctx.state`. */
export interface RequestState {
  /** The client's `X-Request-Id`, or a new id; returned in the same header. */
  requestId: string;
  /** Id of the trace that records the request; undefined without a trace. */
  traceId: string | undefined;
  /** Returns a log that carries the request id. */
  log: () => Log;
  /**
   * Address of the sender, in one spelling. Behind a trusted proxy, it is the forwarded address.
   */
  clientAddress: string | undefined;
  /**
   * Takes the place of the request among those at work, or gives it up while it only waits.
   * Undefined without a limit.
   */
  holdPlace: ((holds: boolean) => void) | undefined;
  /** The authenticated user. Set by authenticate.ts; every route behind the prefix has it. */
  caller: Caller;
  /** Id of the token that the request carries; set with `caller`. Undefined: a JWT. */
  tokenId: number | undefined;
  /** Permissions of that token; set with `caller`. */
  grant: Grant;
  /** Time of the authentication, in ms of `performance.now()`. */
  identifiedAt: number;
  /**
   * Authenticates again: sets `caller`, `tokenId` and `grant`.
   *
   * @throws AppError 401 when the token is no longer valid, or its user is disabled;
   *   `user.forbidden` when it is no admin any more.
   */
  identifyAgain: () => Promise<void>;
  /** Limit of the request's body. */
  bodyLimitBytes: number;
  /** The request's share of the memory of the process. */
  memory: RequestMemory;
  /** The request's place among those of its user. */
  turn: Turn;
  /** Whether the request is refused because its user has as many others open as a user may. */
  isOverLimit: boolean | undefined;
  /** Resource of the request, for its log line: set by the routes that know it. */
  resource: string | undefined;
  recordId: string | undefined;
  /** Code of the error that the request was answered with. */
  errorCode: ErrorCode | undefined;
}

/**
 * The reservation of memory of one request. Every size estimates the memory of the process, not the
 * bytes on the network.
 */
export interface RequestMemory {
  /** Memory for all requests together; a request that needs more can never be served. */
  readonly mostBytes: number;
  /**
   * Replaces the request's reservation by `bytes`. Waits for other requests to finish when too
   * little is free. Also waits while the reservations exceed the limit, for any `bytes`.
   *
   * @throws AppError `server.overloaded`, with `Retry-After`, when too little is free after
   *   `waitMs`.
   */
  reserve(bytes: number): Promise<void>;
  /**
   * Sets the reservation to `bytes` without waiting: to fewer than before, or to more that the
   * process already holds.
   *
   * @throws AppError `server.overloaded` when too little is free.
   */
  settle(bytes: number): void;
  /**
   * Does the same, but never throws: it counts bytes beyond the limit, too. For the answer to a
   * committed write, which is always given.
   */
  hold(bytes: number): void;
  /**
   * Permits taking the request's memory while it waits for its client. After some seconds, a user
   * who has less and finds no free memory takes it.
   *
   * @param onLost Called when the memory is lost; ends the wait.
   * @returns A function that ends the loan.
   */
  lend(onLost: () => void): () => void;
}

/** The place of a request among those of its user that are served now. */
export interface Turn {
  /** Bytes of the body that have arrived, even if they were dropped afterwards. */
  readBytes: number;
  /**
   * Bytes of the generated answer, even if it was then refused for lack of memory. Includes the
   * bytes of a record of which only the entity tag was needed.
   */
  madeBytes: number;
  /**
   * Runs an action that waits for the client, such as reading a slow body, without holding the
   * place.
   */
  pause<T>(act: () => Promise<T>): Promise<T>;
}

export type ApiContext = ParameterizedContext<RequestState>;
export type ApiMiddleware = Middleware<RequestState>;
export type ApiRouter = Router<RequestState>;

/** Returns a parameter in the path of a request; empty without one. */
export function paramOf(ctx: ApiContext, name: string): string {
  return (ctx["params"] as Readonly<Record<string, string | undefined>>)[name] ?? "";
}

/**
 * Creates a router.
 *
 * @param routePrefix Prefix of every route; empty for none. Paths are case-sensitive: `/SVC-API` is
 *   not under `/svc-api`.
 */
export function createRouter(routePrefix: string): ApiRouter {
  return new Router<RequestState>({ prefix: routePrefix, sensitive: true });
}
