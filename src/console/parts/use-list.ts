import { keepPreviousData, useQuery, type UseQueryResult } from "@tanstack/react-query";
import { every } from "../api/every.ts";
import type { CursorPage } from "../api/types.ts";
import { useUrlState } from "./url-state.ts";

/**
 * Reads the page of a list by cursor that the URL names. The previous rows stay until the new ones
 * arrive.
 *
 * @param path Path below the API's prefix, such as `/webhook-deliveries`.
 * @param refetchMilliseconds Interval of refetches of rows that change by themselves.
 */
export function useList<T>(
  path: string,
  refetchMilliseconds: number | false = false,
): UseQueryResult<CursorPage<T>> {
  const { search } = useUrlState();
  return useQuery<CursorPage<T>>({
    queryKey: [path, `?${listQuery(search)}`],
    placeholderData: keepPreviousData,
    refetchInterval: every(refetchMilliseconds),
  });
}

export function listQuery(search: URLSearchParams): string {
  const query = new URLSearchParams(search);
  // Only the console reads these.
  query.delete("columns");
  if (!query.has("cursor")) query.set("cursor", "");
  if (!query.has("per_page")) query.set("per_page", "25");
  return query.toString();
}
