import { AppError } from "../kit/errors.ts";
import type { ApiMiddleware } from "./state.ts";

/**
 * Answers 503 at once while `limit` requests are at work: a queue that cannot be served in time costs memory, and its
 * clients have often given up by their turn. A request is at work until its answer is made, not until it is taken.
 */
export function createConcurrencyLimit(limit: number): ApiMiddleware {
  let atWork = 0;
  return async (_ctx, next) => {
    if (atWork >= limit)
      throw new AppError("server.overloaded", "Server Error", { headers: { "Retry-After": "1" } });
    atWork += 1;
    try {
      await next();
    } finally {
      atWork -= 1;
    }
  };
}
