import { keepPreviousData, useQuery, type UseQueryResult } from "@tanstack/react-query";
import { api, queryString } from "../../api/client.ts";
import type { NumberedPage } from "./types.ts";

/** Reads the page of a numbered list that the URL names. */
export function useNumbered<T>(path: string, search: URLSearchParams): UseQueryResult<NumberedPage<T>> {
  const query = queryString({ page: search.get("page") ?? "1", per_page: 25 });
  return useQuery({
    queryKey: [path, query],
    queryFn: ({ signal }) => api<NumberedPage<T>>(path + query, { signal }),
    placeholderData: keepPreviousData,
  });
}
