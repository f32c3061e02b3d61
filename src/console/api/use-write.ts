import { useMutation, type UseMutationOptions, type UseMutationResult } from "@tanstack/react-query";
import { useRef } from "react";

/**
 * Does a write as `useMutation` does, once however often it is pressed. `isPending` is shown a
 * moment later only: a double click in between would make two webhooks.
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
    // A write that still runs must not hold up the next one.
    reset: () => {
      isAtWork.current = false;
      mutation.reset();
    },
  };
}
