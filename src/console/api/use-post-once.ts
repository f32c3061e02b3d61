import { useRef } from "react";
import { ApiError, mayBeDone } from "./api-error.ts";
import { newIdempotencyKey } from "./client.ts";
import { writeWith } from "./write-with.ts";

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
      const header = ["Idempotency-Key", key.current] as const;
      const { data: made } = await writeWith<T>(path, header, { method: "POST", body });
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
