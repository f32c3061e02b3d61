import { useQuery, type UseQueryResult } from "@tanstack/react-query";
import type { ConfigurationInEffect } from "./types.ts";

/** Reads the configuration of the process that answers the request. */
export function useConfiguration(): UseQueryResult<ConfigurationInEffect> {
  return useQuery({ queryKey: ["/configuration"] });
}
