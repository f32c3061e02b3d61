import { useQuery, type UseQueryResult } from "@tanstack/react-query";
import { api } from "../api/client.ts";
import { every } from "../api/every.ts";
import type { Caller, Stats } from "../api/types.ts";

/** Reads who is signed in. */
export function useCaller(): UseQueryResult<Caller> {
  return useQuery({ queryKey: ["whoami"], queryFn: () => api<Caller>("/whoami"), staleTime: 60_000 });
}

/** Reads the figures of the service, every 15 seconds. */
export function useStats(): UseQueryResult<Stats> {
  return useQuery({
    queryKey: ["stats"],
    queryFn: () => api<Stats>("/stats"),
    refetchInterval: every(15_000),
  });
}

/** What the token may do, as far as it is known. */
export interface Rights {
  readonly isAdmin: boolean;
  /** Whether the token has the scope, or one that holds it. */
  readonly has: (scope: string) => boolean;
}

/**
 * Returns what the caller may do, so that nothing is offered that would be refused. The API
 * decides. While it is not known, all but the part for admins is offered.
 */
export function useRights(): Rights {
  const caller = useStats().data?.caller;
  const scopes = caller?.scopes ?? ["*"];
  return {
    isAdmin: caller?.is_admin === true,
    has: (scope) => scopes.includes("*") || scopes.includes(scope) || scopes.includes(kindOf(scope)),
  };
}

/** `orders:read` is held by `read`. */
function kindOf(scope: string): string {
  return scope.slice(scope.lastIndexOf(":") + 1);
}
