/** A number in [0, 1). */
export type Random = () => number;

/**
 * Returns mulberry32: small, well mixed and the same on every platform. Math.random has no seed.
 */
export function createRandom(seed: number): Random {
  let state = seed;
  return () => {
    state = (state + 0x6d_2b_79_f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export function pick<T>(random: Random, items: readonly T[]): T {
  return items[Math.floor(random() * items.length)] as T;
}

/** Returns a whole number from 0 to `most`. */
export function upTo(random: Random, most: number): number {
  return Math.floor(random() * (most + 1));
}
