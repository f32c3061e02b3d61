import { AppError } from "../errors.ts";
import { createTurns } from "../turns.ts";
import type { ApiMiddleware } from "./state.ts";

/** A request's place among those of its user that are at work. */
export interface Turn {
  /** Runs something that takes its time from the client, such as reading a slow body, without the place. */
  pause<T>(act: () => Promise<T>): Promise<T>;
}

/**
 * Lets `atWork` requests of one user work at one time, and the others wait for their turn, so that no user takes every database
 * connection; answers 503 at once when a user has `limit` requests open. Comes after authentication.
 */
export function createUserTurns({
  atWork,
  limit,
}: {
  readonly atWork: number;
  readonly limit: number;
}): ApiMiddleware {
  const turns = createTurns(atWork);
  /** Open requests by user: at work, waiting or paused. */
  const open = new Map<number, number>();

  return async (ctx, next) => {
    const { id } = ctx.state.caller;
    const count = open.get(id) ?? 0;
    if (count >= limit)
      throw new AppError("server.overloaded", "Server Error", { headers: { "Retry-After": "1" } });
    open.set(id, count + 1);
    ctx.state.turn = {
      async pause(act) {
        turns.leave(id);
        try {
          return await act();
        } finally {
          await turns.take(id);
        }
      },
    };
    await turns.take(id);
    try {
      // The client may have left while its request waited.
      if (!ctx.res.destroyed) await next();
    } finally {
      turns.leave(id);
      const left = (open.get(id) ?? 1) - 1;
      if (left > 0) open.set(id, left);
      else open.delete(id);
    }
  };
}
