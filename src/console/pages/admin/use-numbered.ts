import { keepPreviousData, useQuery, type UseQueryResult } from "@tanstack/react-query";
import { api, queryString } from "../../api/client.ts";
import type { NumberedPage } from "./types.ts";

/** Reads a page of a list by number, as the URL says it. */
export function useNumbered<T>(path: string, search: URLSearchParams): UseQueryResult<NumberedPage<T>> {
  const query = queryString({ page: search.get("page") ?? "1", per_page: 25 });
  return useQuery({
    queryKey: [path, query],
    queryFn: ({ signal }) => api<NumberedPage<T>>(path + query, { signal }),
    placeholderData: keepPreviousData,
  });
}
