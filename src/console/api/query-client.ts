import { QueryClient } from "@tanstack/react-query";
import { isAway } from "./api-error.ts";
import { retryMilliseconds } from "./every.ts";

/**
 * Keeps answers for a moment. A service that is away is asked again by itself; other errors are
 * shown at once, since they would come again.
 */
export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      retry: (count, error) => isAway(error) && count < 1,
      retryDelay: 500,
      refetchInterval: (query) => (isAway(query.state.error) ? retryMilliseconds : false),
      refetchOnWindowFocus: true,
      networkMode: "always",
    },
    mutations: { retry: false, networkMode: "always" },
  },
});
