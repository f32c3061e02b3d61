import { useMutation, type UseMutationOptions, type UseMutationResult } from "@tanstack/react-query";
import { useRef } from "react";

/**
 * Runs a write like `useMutation`, but only once at a time. `isPending` changes a moment later, so
 * that a double click could otherwise make two webhooks.
 */
export function useWrite<Data, Input = void>(
  options: UseMutationOptions<Data, Error, Input>,
): UseMutationResult<Data, Error, Input> {
  const isAtWork = useRef(false);
  const mutation = useMutation({
    ...options,
    onSettled: (...given) => {
      isAtWork.current = false;
      return options.onSettled?.(...given);
    },
  });
  return {
    ...mutation,
    mutate: (...given) => {
      if (isAtWork.current) return;
      isAtWork.current = true;
      mutation.mutate(...given);
    },
    // A write that still runs must not block the next one.
    reset: () => {
      isAtWork.current = false;
      mutation.reset();
    },
  };
}
