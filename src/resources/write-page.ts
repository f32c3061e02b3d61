import { runPart } from "../kit/parts.ts";
import { LargeAnswer } from "../http/large-answer.ts";
import type { Raw } from "../querying/selection.ts";

/** Limit in characters of records that are written at once. A million of them take 10 to 50 ms. */
const mostAtOnce = 256 * 1024;

/**
 * Writes each record of a page. Lets other requests run between the parts of a large page, because
 * all share one thread.
 */
export function writePage(
  userId: number,
  raws: readonly Raw[],
  write: (raw: Raw) => string,
): Promise<readonly string[]> {
  return inParts(userId, raws, { sizeOfItem: sizeOf, act: write });
}

/**
 * Creates the answer of a page. A large page is encoded record by record in the same way, and never
 * joined: joining 10 MB blocked the thread for 20 ms.
 *
 * @param records JSON of each record.
 * @param envelope Envelope of the page, without records.
 */
export async function pageAnswer(
  userId: number,
  records: readonly string[],
  { data: _none, ...rest }: { readonly data: readonly never[] },
): Promise<string | LargeAnswer> {
  const [head, tail] = ['{"data":[', `],${JSON.stringify(rest).slice(1)}`];
  if (totalOf(records, lengthOf) <= mostAtOnce) return `${head}${records.join(",")}${tail}`;
  let isFirst = true;
  const encode = (text: string): readonly Buffer[] => {
    const before = isFirst ? head : ",";
    isFirst = false;
    return [Buffer.from(before), Buffer.from(text)];
  };
  const encoded = await inParts(userId, records, { sizeOfItem: lengthOf, act: encode });
  return new LargeAnswer([...encoded.flat(), Buffer.from(tail)]);
}

/**
 * Calls `act` for all items at once when they are small. Otherwise, calls it in parts over several
 * turns of the event loop.
 */
async function inParts<T, R>(
  userId: number,
  items: readonly T[],
  { sizeOfItem, act }: { readonly sizeOfItem: (item: T) => number; readonly act: (item: T) => R },
): Promise<readonly R[]> {
  if (totalOf(items, sizeOfItem) <= mostAtOnce) return items.map(act);
  const results: R[] = [];
  const writeSome = (): void => {
    for (let left = mostAtOnce; left > 0 && results.length < items.length;) {
      const item = items[results.length] as T;
      results.push(act(item));
      left -= sizeOfItem(item);
    }
  };
  while (results.length < items.length) await runPart(userId, writeSome);
  return results;
}

function totalOf<T>(items: readonly T[], sizeOfItem: (item: T) => number): number {
  let total = 0;
  for (const item of items) total += sizeOfItem(item);
  return total;
}

function sizeOf(raw: Raw): number {
  let size = 0;
  for (const value of raw) if (typeof value === "string") size += value.length;
  return size;
}

function lengthOf({ length }: string): number {
  return length;
}
