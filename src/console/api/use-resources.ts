import { useQuery, type UseQueryResult } from "@tanstack/react-query";
import type { ResourceEntry } from "./types.ts";

/** Reads the served resources, at most once a minute. */
export function useResources(): UseQueryResult<readonly ResourceEntry[]> {
  return useQuery({
    queryKey: ["/resources"],
    select: ({ data }: { readonly data: readonly ResourceEntry[] }) => data,
    staleTime: 60_000,
  });
}
