import { createTurns } from "../kit/turns.ts";
import type { Raw } from "../querying/selection.ts";

/** Characters of records that are written in one go. A million of them take 10 to 50 ms. */
const mostAtOnce = 256 * 1024;

/** All large pages of the process: their parts take turns. */
const parts = createTurns<"all">(1);

/**
 * Writes each record of a page. Lets other requests in between the parts of a large page: all share
 * one thread.
 */
export async function writePage(
  raws: readonly Raw[],
  write: (raw: Raw) => string,
): Promise<readonly string[]> {
  if (sizeOf(raws) <= mostAtOnce) return raws.map(write);
  const texts: string[] = [];
  while (texts.length < raws.length) {
    await parts.take("all");
    try {
      // After the part before it, of this page or another, the event loop has a turn.
      await new Promise((resolve) => setImmediate(resolve));
      for (let left = mostAtOnce; left > 0 && texts.length < raws.length;) {
        const raw = raws[texts.length] as Raw;
        texts.push(write(raw));
        left -= sizeOf([raw]);
      }
    } finally {
      parts.leave("all");
    }
  }
  return texts;
}

/** Returns the characters of the records' own columns. */
function sizeOf(raws: readonly Raw[]): number {
  let size = 0;
  for (const raw of raws) for (const value of raw) if (typeof value === "string") size += value.length;
  return size;
}
