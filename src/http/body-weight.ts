import { memoryPerBodyByte } from "../kit/memory-weights.ts";

/**
 * Estimates the memory that a JSON text takes while its request is served, from the part read so
 * far.
 */
export interface BodyWeight {
  /** @returns The estimate for all chunks so far, in bytes. */
  add(chunk: Uint8Array): number;
}

/**
 * For an object or list, and for one more value in it: some ten copies of 56 bytes and of 16. `{},`
 * makes 70 bytes of three.
 */
const perContainer = 600;
const perValue = 160;

const [quote, backslash, comma, brace, bracket] = [0x22, 0x5c, 0x2c, 0x7b, 0x5b];

/** For each chunk, which is a buffer of its own; small ones were put together. */
const perChunk = 512;

/** Looks at bytes: in UTF-8, no byte of a character outside ASCII is one of the five. */
export function createBodyWeight(): BodyWeight {
  let weight = 0;
  let isInText = false;
  let isEscaped = false;
  return {
    add(chunk) {
      weight += perChunk + chunk.length * memoryPerBodyByte;
      // An iterator takes five times as long.
      for (let at = 0; at < chunk.length; at += 1) {
        const byte = chunk[at];
        if (isEscaped) isEscaped = false;
        else if (isInText) {
          if (byte === quote) isInText = false;
          else if (byte === backslash) isEscaped = true;
        } else if (byte === quote) isInText = true;
        else if (byte === comma) weight += perValue;
        else if (byte === brace || byte === bracket) weight += perContainer;
      }
      return weight;
    },
  };
}
