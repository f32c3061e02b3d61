import { useQuery, type UseQueryResult } from "@tanstack/react-query";
import { api } from "./client.ts";
import type { ResourceEntry } from "./types.ts";

/** Reads the served resources, at most once a minute. */
export function useResources(): UseQueryResult<readonly ResourceEntry[]> {
  return useQuery({
    queryKey: ["resources"],
    queryFn: async () => (await api<{ readonly data: readonly ResourceEntry[] }>("/resources")).data,
    staleTime: 60_000,
  });
}
