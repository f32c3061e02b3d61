import { setImmediate as nextTurn } from "node:timers/promises";
import { addCount } from "../kit/add-count.ts";
import { AppError } from "../kit/errors.ts";
import { createTurns } from "../kit/turns.ts";
import { createPresence, type Presence } from "./presence.ts";
import { checkSender } from "./sender.ts";
import type { ApiMiddleware, Turn } from "./state.ts";

/**
 * Rate at which a large request keeps its place after its answer, while other users wait. A MB
 * takes about 20 to 80 ms of the one thread that serves all. 2 MB/s in each place leave most of it
 * to the others. A single active user has the whole thread. A body whose client left counts in
 * full: the p99 of others is 171 ms beside such uploads, and was 264 ms when it counted an eighth.
 */
const holding = { freeBytes: 64 * 1024, bytesPerMs: 2 * 1024 };

/**
 * Lets `atWork` requests of one user run at one time, so that no user takes every database
 * connection. The other requests of the user wait for their turn. Answers 503 at once when the user
 * has `limit` requests open. Comes after authentication.
 *
 * Returns a function that creates the middleware of a limit. All of them count together, so that a
 * reload does not forget the requests in flight.
 *
 * @param alone Number of requests of a user that run while no other user is active.
 * @param presence Records the user of each request.
 */
export function createUserTurns({
  atWork,
  alone = atWork,
  presence = createPresence(),
}: {
  readonly atWork: number;
  readonly alone?: number;
  readonly presence?: Presence;
}): (limit: number) => ApiMiddleware {
  /** Number of requests of each user without an answer: running, waiting or paused. */
  const open = new Map<number, number>();
  const turns = createTurns((id) => (open.size === 1 && presence.isAlone(id) ? alone : atWork));
  let begun: Promise<void> = Promise.resolve();
  /**
   * Lets one waiting request begin in each turn of the event loop. A request of another user takes
   * several turns, and waits in each for all requests that begin in it. Beside 50 connections of
   * one user, its p99 is 34 ms, instead of 63 ms.
   */
  const oneATurn = (): Promise<void> => (begun = begun.then(() => nextTurn()));

  return (limit) => async (ctx, next) => {
    const { id } = ctx.state.caller;
    if ((open.get(id) ?? 0) >= limit) {
      ctx.state.isOverLimit = true;
      // The body is not read, because reading a refused request takes time too.
      const headers = { "Retry-After": "1", Connection: "close" };
      throw new AppError("server.overloaded", "Server Error", { headers });
    }
    addCount(open, id, 1);
    presence.note(id);
    const { holdPlace } = ctx.state;
    const turn: Turn = {
      readBytes: 0,
      madeBytes: 0,
      async pause(act) {
        turns.leave(id);
        holdPlace?.(false);
        try {
          return await act();
        } finally {
          await turns.take(id);
          holdPlace?.(true);
        }
      },
    };
    ctx.state.turn = turn;
    const place = turns.take(id);
    if (place !== undefined) {
      holdPlace?.(false);
      await place;
      if (!presence.isAlone(id)) await oneATurn();
      holdPlace?.(true);
    }
    // The client may have left while its request waited.
    const isGone = ctx.res.destroyed;
    const isFree = presence.isAlone(id) || isGone;
    try {
      // The request may have waited for minutes for other requests of its user.
      if (!isGone) await checkSender(ctx);
      // A request that begins after its client has left would keep its memory, or its stream.
      if (!ctx.res.destroyed) await next();
    } finally {
      addCount(open, id, -1);
      const leave = (): void => turns.leave(id);
      if (isFree) leave();
      // Runs later, when the answer is complete and its size is known.
      else setImmediate(() => leaveAfter(holdMsOf(turn), leave));
    }
  };
}

function holdMsOf({ readBytes, madeBytes }: Turn): number {
  return (readBytes + madeBytes - holding.freeBytes) / holding.bytesPerMs;
}

function leaveAfter(holdMs: number, leave: () => void): void {
  if (holdMs > 0) setTimeout(leave, holdMs).unref();
  else leave();
}
