import { useQuery, type UseQueryResult } from "@tanstack/react-query";
import { every } from "../api/every.ts";
import { queryClient } from "../api/query-client.ts";
import type { Caller, Stats } from "../api/types.ts";
import { leaveSession } from "./session.ts";

/** Reads the user who is signed in. */
export function useCaller(): UseQueryResult<Caller> {
  return useQuery({ queryKey: ["/whoami"], staleTime: 60_000 });
}

/** Reads the figures of the service, every 15 seconds. */
export function useStats(): UseQueryResult<Stats> {
  return useQuery({ queryKey: ["/stats"], refetchInterval: every(15_000) });
}

/** Signs out. Nothing of the session remains, not even on the page. */
export function signOut(): void {
  leaveSession();
  queryClient.clear();
}

/** Rights of the token, as far as known. */
interface Rights {
  readonly isAdmin: boolean;
  /** Returns whether the token has the scope, or one that includes it. */
  readonly has: (scope: string) => boolean;
}

/**
 * Returns the rights of the caller, so that the console offers no action that would be refused. The
 * API decides. While the rights are unknown, all but the part for admins is offered.
 */
export function useRights(): Rights {
  const caller = useStats().data?.caller;
  const scopes = caller?.scopes ?? ["*"];
  return {
    isAdmin: caller?.is_admin === true,
    has: (scope) => scopes.includes("*") || scopes.includes(scope) || scopes.includes(kindOf(scope)),
  };
}

/** Returns the kind of a scope, which includes it: `read` includes `orders:read`. */
function kindOf(scope: string): string {
  return scope.slice(scope.lastIndexOf(":") + 1);
}
