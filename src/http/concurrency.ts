import { overloadedError } from "../kit/errors.ts";
import type { ApiMiddleware } from "./state.ts";

/**
 * Answers 503 at once while `limit` requests are at work. A queue that cannot be served in time
 * costs memory, and its clients have often given up before their turn. A request is at work until
 * its answer is made, not until the client has it.
 *
 * A request holds no place while it waits for its user's turn or for its client. Otherwise five
 * users with 200 waiting requests each would take all 1,000. After the wait it always gets a place,
 * because the turns limit the requests of a user.
 *
 * Returns a function that creates the middleware of a limit. All of them count together, so that a
 * reload does not forget the requests at work.
 */
export function createConcurrency(): (limit: number) => ApiMiddleware {
  let atWork = 0;
  return (limit) => async (ctx, next) => {
    if (atWork >= limit) throw overloadedError();
    let isHeld = false;
    const hold = (holds: boolean): void => {
      if (holds !== isHeld) atWork += holds ? 1 : -1;
      isHeld = holds;
    };
    hold(true);
    ctx.state.holdPlace = hold;
    try {
      await next();
    } finally {
      hold(false);
    }
  };
}
