import type { Rate } from "../config/kinds.ts";
import { setBounded } from "../kit/bounded-map.ts";
import { addressBlock, wideBlock } from "./client-address.ts";

/** Counts failures by client address. */
export interface FailureLimit {
  /** Returns the seconds until the address may try again; undefined while it may. */
  waitSeconds(address: string): number | undefined;
  note(address: string): void;
}

/**
 * Limit of the addresses with a count, which take about 10 MB. The address whose last failure is
 * longest ago is forgotten first: a client with so many addresses has as many tries anyway.
 */
const maxAddresses = 50_000;

/** Limit of an IPv6 /48, which one client may have, as a multiple of `count`. */
const wideTimes = 16;

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

  return {
    waitSeconds(address) {
      const known = current();
      if (known.size === 0) return undefined;
      const isOver = limitsOf(address, count).some(([block, most]) => (known.get(block) ?? 0) >= most);
      return isOver ? Math.max(1, Math.ceil((endsAt - now()) / 1000)) : undefined;
    },
    note(address) {
      const known = current();
      for (const [block] of limitsOf(address, count))
        setBounded(known, [block, (known.get(block) ?? 0) + 1], maxAddresses);
    },
  };
}

/** Returns the blocks of an address, each with the number of failures that it may have. */
function limitsOf(address: string, count: number): readonly (readonly [block: string, most: number])[] {
  const wide = wideBlock(address);
  const own = [addressBlock(address), count] as const;
  return wide === undefined ? [own] : [own, [wide, wideTimes * count]];
}
