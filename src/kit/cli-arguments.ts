import { InvalidArgumentError } from "commander";
import { durationMsOf } from "./duration.ts";
import { idOf } from "./ids.ts";

/** Parses the id of a user or a token. Throws commander's usage error for anything else. */
export const parseId = argument(idOf, "An id is a positive whole number.");

/**
 * Parses `365d`, `12h` or `30m` to milliseconds. Throws commander's usage error for anything else.
 */
export const parseDuration = argument(
  durationMsOf,
  "A duration is a whole number and d, h or m, such as 365d.",
);

function argument<T>(read: (text: string) => T | undefined, message: string): (text: string) => T {
  return (text) => {
    const value = read(text);
    if (value === undefined) throw new InvalidArgumentError(message);
    return value;
  };
}
