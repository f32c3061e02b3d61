import { useRef } from "react";
import { ApiError, mayBeDone } from "./api-error.ts";
import { api, newIdempotencyKey } from "./client.ts";

const doneBefore =
  "An earlier try was done after all, with what stood here then. Look for what it made: sent again, this makes another.";

/**
 * Returns a function that sends a POST with an `Idempotency-Key`. Another try has the same key
 * while the first one may have been done.
 *
 * @returns The JSON of the answer.
 */
export function usePostOnce(): <T>(path: string, body: unknown) => Promise<T> {
  const key = useRef<string | null>(null);
  return async <T>(path: string, body: unknown) => {
    key.current ??= newIdempotencyKey();
    try {
      const headers = { "Idempotency-Key": key.current };
      const made = await api<T>(path, { method: "POST", body, headers });
      key.current = null;
      return made;
    } catch (error) {
      if (!mayBeDone(error)) key.current = null;
      if (error instanceof ApiError && error.code === "idempotency.mismatch")
        throw new Error(doneBefore, { cause: error });
      throw error;
    }
  };
}
