import { Router } from "@koa/router";
import type { Middleware, ParameterizedContext } from "koa";
import type { ErrorCode } from "../kit/errors.ts";
import type { Log } from "../telemetry/log.ts";
import type { Caller } from "../kit/caller.ts";
import type { Grant } from "../kit/scopes.ts";
import type { RequestMemory } from "./memory-budget.ts";
import type { Turn } from "./user-turns.ts";

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
  /** Set by authenticate.ts; every route behind the prefix has it. */
  caller: Caller;
  /** Id of the token that the request carries; set with `caller`. Undefined: a JWT. */
  tokenId: number | undefined;
  /** What that token allows; set with `caller`. */
  grant: Grant;
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
