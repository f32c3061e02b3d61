import { memoryPerBodyByte } from "../kit/memory-weights.ts";

/**
 * An estimate of the memory that a JSON text takes while its request is served. It uses the part
 * that has been read so far.
 */
interface BodyWeight {
  /** @returns The estimate for all chunks so far, in bytes. */
  add(chunk: Uint8Array): number;
  /** Returns the greatest depth of nested objects and lists in all chunks so far. */
  depth(): number;
}

/**
 * Bytes for an object or list, and for one more value in it: about ten copies of 56 and of 16
 * bytes. The three bytes of `{},` become 70 bytes.
 */
const perContainer = 600;
const perValue = 160;

const [quote, backslash, comma] = [0x22, 0x5c, 0x2c] as const;
const [brace, bracket, braceEnd, bracketEnd] = [0x7b, 0x5b, 0x7d, 0x5d] as const;

/** Bytes for each chunk, which is a separate buffer. Small chunks are joined before. */
const perChunk = 512;

/**
 * Creates the estimate. It looks at bytes, because no byte of a UTF-8 character outside ASCII is
 * one of the seven.
 */
export function createBodyWeight(): BodyWeight {
  let weight = 0;
  let level = 0;
  let depth = 0;
  let isInText = false;
  /** Whether the first byte of the next chunk is escaped. */
  let isEscaped = false;
  return {
    add(chunk) {
      weight += perChunk + chunk.length * memoryPerBodyByte;
      const textEnd = createTextEnd(chunk);
      let at = isEscaped ? 1 : 0;
      while (at < chunk.length) {
        if (isInText) {
          at = textEnd(at);
          if (at === chunk.length) break;
          isInText = chunk[at] === backslash;
          at += isInText ? 2 : 1;
          continue;
        }
        const byte = chunk[at];
        at += 1;
        if (byte === quote) isInText = true;
        else if (byte === comma) weight += perValue;
        else if (byte === braceEnd || byte === bracketEnd) level -= 1;
        else if (byte === brace || byte === bracket) {
          weight += perContainer;
          level += 1;
          if (level > depth) depth = level;
        }
      }
      isEscaped = at > chunk.length;
      return weight;
    },
    depth: () => depth,
  };
}

/**
 * Bytes of a text that are checked one by one. The rest is searched, which is 100 times as fast.
 */
const shortText = 32;

/**
 * Returns a function that finds the next quote or backslash from a position on. It returns the
 * chunk's length when there is neither.
 */
function createTextEnd(chunk: Uint8Array): (from: number) => number {
  const next = { [quote]: -1, [backslash]: -1 };
  /** Caches the positions, since one of the two may be far away and the other frequent. */
  const find = (byte: typeof quote | typeof backslash, from: number): number => {
    if (next[byte] < from) {
      const found = chunk.indexOf(byte, from);
      next[byte] = found === -1 ? chunk.length : found;
    }
    return next[byte];
  };
  return (from) => {
    const end = Math.min(from + shortText, chunk.length);
    for (let at = from; at < end; at += 1) {
      const byte = chunk[at];
      if (byte === quote || byte === backslash) return at;
    }
    return Math.min(find(quote, end), find(backslash, end));
  };
}
