import { QueryClient } from "@tanstack/react-query";
import { isAway } from "./api-error.ts";
import { api } from "./client.ts";
import { every } from "./every.ts";

/**
 * Caches answers for a moment. Retries automatically while the service is unavailable. Other errors
 * are shown at once, because they would recur.
 *
 * The key of a query is the path of its request, in parts: `["/users", "/7"]`. Its first part
 * invalidates all that is below it.
 */
export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      queryFn: ({ queryKey, signal }) => api<unknown>(queryKey.join(""), { signal }),
      staleTime: 5_000,
      retry: (count, error) => isAway(error) && count < 1,
      retryDelay: 500,
      refetchInterval: every(false),
      refetchOnWindowFocus: true,
      networkMode: "always",
    },
    mutations: { retry: false, networkMode: "always" },
  },
});

/** Reads the shown data again: all of it, or the part below a key. */
export function refresh(...queryKey: readonly string[]): Promise<void> {
  return queryClient.invalidateQueries({ queryKey });
}
