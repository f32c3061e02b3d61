import { useQuery, type UseMutationResult, type UseQueryResult } from "@tanstack/react-query";
import { ApiError, isStatus } from "../../api/api-error.ts";
import { api } from "../../api/client.ts";
import { every } from "../../api/every.ts";
import { refresh } from "../../api/query-client.ts";
import type { CursorPage } from "../../api/types.ts";
import type { Webhook } from "../../api/webhook-types.ts";
import { useWrite } from "../../api/use-write.ts";

/** A webhook, and whether it belongs to the caller. The webhooks of others are read-only. */
export interface FoundWebhook {
  readonly webhook: Webhook;
  readonly isOwn: boolean;
}

/** Reads a webhook. Admins also find those of others, in the list of all webhooks. */
export function useWebhook(id: string): UseQueryResult<FoundWebhook> {
  return useQuery({
    queryKey: ["/webhooks", "one", id],
    refetchInterval: every(10_000),
    queryFn: async ({ signal }): Promise<FoundWebhook> => {
      try {
        return {
          webhook: await api<Webhook>(`/webhooks/${encodeURIComponent(id)}`, { signal }),
          isOwn: true,
        };
      } catch (error) {
        const other = isStatus(error, 404) && /^\d{1,10}$/.test(id) ? await findOther(id, signal) : undefined;
        if (other === undefined) throw error;
        return { webhook: other, isOwn: false };
      }
    },
  });
}

/** Finds a webhook of another user; undefined for callers who are not admins. */
async function findOther(id: string, signal: AbortSignal): Promise<Webhook | undefined> {
  try {
    const path = `/webhooks?user_id=*&filter[id]=${id}&cursor=`;
    const { data } = await api<CursorPage<Webhook>>(path, { signal });
    return data[0];
  } catch (error) {
    if (error instanceof ApiError && error.status < 500 && error.status > 0) return undefined;
    throw error;
  }
}

export function useChangeWebhook(
  id: number,
): UseMutationResult<Webhook, unknown, Readonly<Record<string, unknown>>> {
  return useWrite({
    mutationFn: (body) => api<Webhook>(`/webhooks/${id}`, { method: "PATCH", body }),
    onSuccess: () => refresh("/webhooks"),
  });
}
