import type { Rate } from "../config/kinds.ts";
import { addressBlock } from "./client-address.ts";

/** Counts failures by client address. */
export interface FailureLimit {
  /** Returns the seconds until the address may try again; undefined while it may. */
  waitSeconds(address: string): number | undefined;
  note(address: string): void;
}

/**
 * Limit of the addresses with a count of their own. The others share one count, so that memory
 * stays below some 10 MB.
 */
const maxAddresses = 50_000;
const others = "others";

/**
 * Lets each address fail `count` times in a window. All windows begin together. Each process counts
 * separately.
 *
 * @param now Monotonic clock, in ms.
 */
export function createFailureLimit(
  { count, windowMs }: Rate,
  now: () => number = () => performance.now(),
): FailureLimit {
  const failures = new Map<string, number>();
  let endsAt = now() + windowMs;

  function current(): Map<string, number> {
    if (now() >= endsAt) {
      failures.clear();
      endsAt = now() + windowMs;
    }
    return failures;
  }

  function keyOf(address: string): string {
    const block = addressBlock(address);
    return failures.has(block) || failures.size < maxAddresses ? block : others;
  }

  return {
    waitSeconds(address) {
      const known = current();
      if (known.size === 0 || (known.get(keyOf(address)) ?? 0) < count) return undefined;
      return Math.max(1, Math.ceil((endsAt - now()) / 1000));
    },
    note(address) {
      const known = current();
      const key = keyOf(address);
      known.set(key, (known.get(key) ?? 0) + 1);
    },
  };
}
