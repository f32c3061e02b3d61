import { isAway } from "./api-error.ts";

/** Interval of retries while the service is unavailable, which the pages name. */
const retryMilliseconds = 3_000;

interface Asked<Data> {
  readonly state: { readonly data?: Data | undefined; readonly error: Error | null };
}

/**
 * Returns a refetch interval: `retryMilliseconds` while the service is unavailable, otherwise `ms`,
 * and false for data that no longer changes.
 */
export function every<Data>(
  ms: number | false,
  isOver: (data: Data | undefined) => boolean = () => false,
): (query: Asked<NoInfer<Data>>) => number | false {
  return ({ state: { data, error } }) => (isAway(error) ? retryMilliseconds : isOver(data) ? false : ms);
}
