import { overloadedError } from "../kit/errors.ts";
import type { ApiMiddleware } from "./state.ts";

/**
 * Answers 503 at once while `limit` requests are in flight. A queue that cannot be served in time
 * costs memory, and its clients have often given up before their turn. A request is in flight until
 * its answer is made, not until the client has it. It may give up its place earlier.
 */
export function createConcurrencyLimit(limit: number): ApiMiddleware {
  let atWork = 0;
  return async (ctx, next) => {
    if (atWork >= limit) throw overloadedError();
    atWork += 1;
    let isTaken = true;
    const leave = (): void => {
      if (isTaken) atWork -= 1;
      isTaken = false;
    };
    ctx.state.leavePlace = leave;
    try {
      await next();
    } finally {
      leave();
    }
  };
}
