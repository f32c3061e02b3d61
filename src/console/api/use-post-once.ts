import { useState } from "react";
import { ApiError, isUnanswered, mayBeDone } from "./api-error.ts";
import { api, newIdempotencyKey } from "./client.ts";
import { isHeaderRefused } from "./write-version.ts";

const doneBefore =
  "An earlier try was done after all, with what stood here then. Look for what it created: sent again, this creates another.";
const mayBeDoneBefore =
  "An earlier try may have been done: look for what it created. Sent again, this may create another.";

/**
 * Returns a function that sends a POST with an `Idempotency-Key`. A retry to a path has the same
 * key while an earlier try may have succeeded. When the service accepts no key, a retry after an
 * unanswered try fails once, so that the user decides.
 *
 * @returns The JSON of the answer.
 */
export function usePostOnce(): <T>(path: string, body: unknown) => Promise<T> {
  // The key of the next try by path; null after a try without a key that may have succeeded.
  const [keys] = useState(() => new Map<string, string | null>());
  return async <T>(path: string, body: unknown) => {
    if (keys.get(path) === null) {
      keys.delete(path);
      throw new Error(mayBeDoneBefore);
    }
    const key = keys.get(path) ?? newIdempotencyKey();
    const post = { method: "POST", body } as const;
    keys.set(path, key);
    try {
      const made = await api<T>(path, { ...post, headers: { "Idempotency-Key": key } });
      keys.delete(path);
      return made;
    } catch (error) {
      const isRefused = isHeaderRefused(error, "Idempotency-Key");
      if (isRefused || !mayBeDone(error)) keys.delete(path);
      if (error instanceof ApiError && error.code === "idempotency.mismatch")
        throw new Error(doneBefore, { cause: error });
      if (!isRefused) throw error;
    }
    try {
      return await api<T>(path, post);
    } catch (error) {
      if (isUnanswered(error)) keys.set(path, null);
      throw error;
    }
  };
}
