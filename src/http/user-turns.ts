import { AppError } from "../errors.ts";
import type { ApiMiddleware } from "./state.ts";

/** A request's place among those of its user that are at work. */
export interface Turn {
  /** Runs something that takes its time from the client, such as reading a slow body, without the place. */
  pause<T>(act: () => Promise<T>): Promise<T>;
}

interface User {
  atWork: number;
  /** At work, waiting or paused. */
  requests: number;
  readonly waiting: (() => void)[];
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
  const users = new Map<number, User>();

  /** Undefined when there is a place at once. */
  function take(user: User): Promise<void> | undefined {
    if (user.atWork < atWork) {
      user.atWork += 1;
      return undefined;
    }
    return new Promise((resolve) => user.waiting.push(resolve));
  }

  /** The place goes to the next one that waits. */
  function leave(user: User): void {
    const next = user.waiting.shift();
    if (next === undefined) user.atWork -= 1;
    else next();
  }

  return async (ctx, next) => {
    const { id } = ctx.state.caller;
    const user = users.get(id) ?? { atWork: 0, requests: 0, waiting: [] };
    if (user.requests >= limit)
      throw new AppError("server.overloaded", "Server Error", { headers: { "Retry-After": "1" } });
    users.set(id, user);
    user.requests += 1;
    try {
      await take(user);
      ctx.state.turn = {
        async pause(act) {
          leave(user);
          try {
            return await act();
          } finally {
            await take(user);
          }
        },
      };
      try {
        // The client may have left while its request waited.
        if (!ctx.res.destroyed) await next();
      } finally {
        leave(user);
      }
    } finally {
      user.requests -= 1;
      if (user.requests === 0) users.delete(id);
    }
  };
}
