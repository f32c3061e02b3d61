import { RateLimiterMemory, RateLimiterRes } from "rate-limiter-flexible";
import { AppError } from "../kit/errors.ts";
import type { Rate } from "../config/kinds.ts";
import type { ApiMiddleware } from "./state.ts";

/**
 * Lets each user make `count` requests in a window, which begins with the first of them; 429
 * afterwards. All tokens of a user count together, because a user may make a new one at any time.
 * Comes after authentication, so that keys are ids of existing users. Their number limits the
 * memory: about 500 bytes each, freed with the window. Each process counts separately, because a
 * counter in PostgreSQL would add a write to every request.
 *
 * Does not count failed authentications. One of 62^43 tokens cannot be guessed, and many clients
 * behind a proxy share one address.
 */
export function createRateLimit({ count, windowMs }: Rate): ApiMiddleware {
  const windowSeconds = Math.ceil(windowMs / 1000);
  const limiter = new RateLimiterMemory({ points: count, duration: windowMs / 1000, keyPrefix: "" });
  const policy = `"user";q=${count};w=${windowSeconds}`;

  return async (ctx, next) => {
    const { isWithin, state } = await consume(limiter, String(ctx.state.caller.id));
    const waitSeconds = Math.max(1, Math.ceil(state.msBeforeNext / 1000));
    // draft-ietf-httpapi-ratelimit-headers-10, and its earlier form (up to -06), which most clients
    // know. Not `X-RateLimit-*`: services disagree on whether its reset is a time or a duration.
    ctx.set({
      "RateLimit-Policy": policy,
      RateLimit: `"user";r=${state.remainingPoints};t=${waitSeconds}`,
      "RateLimit-Limit": String(count),
      "RateLimit-Remaining": String(state.remainingPoints),
      "RateLimit-Reset": String(waitSeconds),
    });
    if (!isWithin) throw exceeded(waitSeconds);
    await next();
  };
}

/**
 * Takes one request from the limit. The library rejects with the state when the limit is exceeded.
 */
async function consume(
  limiter: RateLimiterMemory,
  key: string,
): Promise<{ readonly isWithin: boolean; readonly state: RateLimiterRes }> {
  try {
    return { isWithin: true, state: await limiter.consume(key) };
  } catch (error) {
    if (error instanceof RateLimiterRes) return { isWithin: false, state: error };
    throw error;
  }
}

function exceeded(waitSeconds: number): AppError {
  const wait = waitSeconds === 1 ? "1 second" : `${waitSeconds} seconds`;
  return new AppError("rate.exceeded", `Too many requests. Try again in ${wait}.`, {
    headers: { "Retry-After": String(waitSeconds) },
  });
}
