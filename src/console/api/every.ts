import { isAway } from "./api-error.ts";

/** How often a service that is away is asked again, as the pages say. */
export const retryMilliseconds = 3_000;

/** Asks again every `ms`; while the service is away as often as the page then says. */
export function every(ms: number): (query: { readonly state: { readonly error: Error | null } }) => number {
  return ({ state: { error } }) => (isAway(error) ? retryMilliseconds : ms);
}
