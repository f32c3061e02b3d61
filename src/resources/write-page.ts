import { createTurns } from "../kit/turns.ts";
import { LargeAnswer } from "../http/large-answer.ts";
import type { Raw } from "../querying/selection.ts";

/** Characters of records that are written in one go. A million of them take 10 to 50 ms. */
const mostAtOnce = 256 * 1024;

/** All large pages of the process: their parts take turns. */
const parts = createTurns<"all">(1);
/** What the last part took. */
let lastTookMs = 0;

/**
 * Writes each record of a page. Lets other requests in between the parts of a large page: all share
 * one thread.
 */
export function writePage(raws: readonly Raw[], write: (raw: Raw) => string): Promise<readonly string[]> {
  return inParts(raws, sizeOf, write);
}

/**
 * Makes the answer of a page. That of a large one is encoded record by record, likewise, and never
 * put together: for 10 MB that took 20 ms in one go.
 *
 * @param records JSON of each.
 * @param rest JSON of the envelope's other members, without its opening brace.
 */
export async function pageAnswer(records: readonly string[], rest: string): Promise<string | LargeAnswer> {
  const [head, tail] = ['{"data":[', `],${rest}`];
  if (totalOf(records, lengthOf) <= mostAtOnce) return `${head}${records.join(",")}${tail}`;
  let isFirst = true;
  const encoded = await inParts(records, lengthOf, (text) => {
    const before = isFirst ? head : ",";
    isFirst = false;
    return [Buffer.from(before), Buffer.from(text)];
  });
  return new LargeAnswer([...encoded.flat(), Buffer.from(tail)]);
}

/** Does `act` with all items at once where they are small, and else in turns of the event loop. */
async function inParts<T, R>(
  items: readonly T[],
  sizeOfItem: (item: T) => number,
  act: (item: T) => R,
): Promise<readonly R[]> {
  if (totalOf(items, sizeOfItem) <= mostAtOnce) return items.map(act);
  const results: R[] = [];
  while (results.length < items.length) {
    await parts.take("all");
    try {
      // Other requests get as long as the part before took, of this page or another. The event loop
      // has many turns then, and Node.js accepts one connection in each.
      await new Promise((resolve) => setTimeout(resolve, lastTookMs));
      const startedAt = performance.now();
      for (let left = mostAtOnce; left > 0 && results.length < items.length;) {
        const item = items[results.length] as T;
        results.push(act(item));
        left -= sizeOfItem(item);
      }
      lastTookMs = performance.now() - startedAt;
    } finally {
      parts.leave("all");
    }
  }
  return results;
}

function totalOf<T>(items: readonly T[], sizeOfItem: (item: T) => number): number {
  let total = 0;
  for (const item of items) total += sizeOfItem(item);
  return total;
}

/** Returns the characters of a record's own columns. */
function sizeOf(raw: Raw): number {
  let size = 0;
  for (const value of raw) if (typeof value === "string") size += value.length;
  return size;
}

function lengthOf({ length }: string): number {
  return length;
}
