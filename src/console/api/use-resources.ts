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

/** Returns the names of the resources that have events, as far as they are known. */
export function useNamesWithEvents(): readonly string[] {
  return (useResources().data ?? []).filter(({ triggers }) => triggers.length > 0).map(({ name }) => name);
}
