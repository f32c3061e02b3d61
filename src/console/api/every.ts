import { isAway } from "./api-error.ts";

/** Interval of retries while the service is unavailable, which the pages name. */
export const retryMilliseconds = 3_000;

/** Returns a refetch interval: `ms`, or `retryMilliseconds` while the service is unavailable. */
export function every(ms: number): (query: { readonly state: { readonly error: Error | null } }) => number {
  return ({ state: { error } }) => (isAway(error) ? retryMilliseconds : ms);
}
