import { databaseFaultOf } from "../db/database-fault.ts";
import { readFitting } from "../db/read-fitting.ts";
import type { CountMode } from "../mapping/definition.ts";
import { correctedTotal, exactTotal, type Total } from "./count.ts";
import { cursorPage, type CursorPage as PageOfRows } from "./cursor-page.ts";
import type { Position } from "./cursor.ts";

export interface ListPart {
  readonly skip: number;
  readonly take: number;
  /** Number of records that probably fit into one answer, where not all of them do. */
  readonly likely?: number | undefined;
  readonly count: CountMode;
}

export interface NumberedPage<T> {
  readonly records: readonly T[];
  /**
   * Number of records that were requested from the database. It is lower than the requested number
   * where an answer would be too large.
   */
  readonly size: number;
  /** Number of records on all pages; undefined without a count. */
  readonly total: number | undefined;
  readonly isEstimate: boolean;
  /** Whether more records follow this page; only without a count. */
  readonly hasNext: boolean;
}

/** The part of a list from a position on. */
export interface CursorPart {
  /** Undefined for the first page. */
  readonly from: Position | undefined;
  readonly take: number;
  readonly likely?: number | undefined;
}

/** A page from a position on, with the positions of its neighbours. */
export interface CursorPage extends Omit<PageOfRows<never>, "rows"> {
  readonly records: readonly string[];
  readonly size: number;
}

/**
 * Reads a page, or as much of it as a connection may hold.
 *
 * @param read Reads the given number of records from `skip` on.
 * @param readCounted Does the same, and may count all records when there is a record at `countAt`.
 *   Default: it does not count.
 */
export async function readPage<T>(
  { skip, take, likely = take, count: mode }: ListPart,
  {
    read,
    readCounted = async (most) => ({ records: await read(most) }),
    count,
  }: {
    readonly read: (size: number) => Promise<readonly T[]>;
    readonly readCounted?: (
      size: number,
      countAt: number,
    ) => Promise<{ readonly records: readonly T[]; readonly total?: number | undefined }>;
    readonly count: (mode: "exact" | "estimated") => Promise<Total>;
  },
): Promise<NumberedPage<T>> {
  const size = Math.min(take, likely);
  if (mode !== "exact") {
    const { hasMore, ...found } = await readWithNext(size, read);
    const records = found.records.slice(0, found.size);
    const page = { records, size: found.size, hasNext: hasMore };
    if (mode === "none") return { ...page, total: undefined, isEstimate: false };
    const end = skip + records.length;
    // Most lists fit on their first page, whose length then is the count.
    if (!hasMore && (skip === 0 || records.length > 0)) return { ...page, ...exactTotal(end) };
    // An OFFSET beyond the end has read all records, so an exact count takes no longer.
    if (!hasMore) return { ...page, ...(await count("exact")) };
    return { ...page, ...correctedTotal(await count(mode), { end, size: records.length, hasMore }) };
  }
  let total: number | undefined;
  const found = await readFitting(size, async (most) => {
    const { records, total: counted } = await readCounted(most, skip > 0 ? 1 : most);
    // A page that is not full contains the last records of the list. Most lists fit on their first
    // page.
    const isLast = records.length < most && (records.length > 0 || skip === 0);
    total = counted ?? (isLast ? skip + records.length : undefined);
    return records;
  });
  return { ...found, ...(total === undefined ? await count(mode) : exactTotal(total)), hasNext: false };
}

/**
 * Reads a page from a position on, and one further record, which tells whether another page
 * follows.
 *
 * @param read Reads the given number of records, each with its position, in the direction of the
 *   page.
 */
export async function readCursorPage(
  { from, take, likely = take }: CursorPart,
  read: (
    size: number,
  ) => Promise<readonly { readonly json: string; readonly position: Position["values"] }[]>,
): Promise<CursorPage> {
  const { records: found, size, hasMore } = await readWithNext(Math.min(take, likely), read);
  const { rows, ...around } = cursorPage(found, {
    position: from,
    take: size,
    hasMore,
    valuesOf: ({ position }) => position,
  });
  if (from === undefined || rows.length > 0)
    return { records: rows.map(({ json }) => json), size, ...around };
  // An empty page leads back to the record where it would have begun.
  const back = { ...from, isBackwards: !from.isBackwards, isInclusive: !from.isInclusive };
  return { records: [], size, ...around, [from.isBackwards ? "next" : "previous"]: back };
}

/** Reads one further record, which tells whether more follow. */
async function readWithNext<T>(
  size: number,
  read: (size: number) => Promise<readonly T[]>,
): Promise<{ readonly records: readonly T[]; readonly size: number; readonly hasMore: boolean }> {
  try {
    const found = await readFitting(size, (most) => read(most + 1), 1);
    return { ...found, hasMore: found.records.length > found.size };
  } catch (error) {
    if (databaseFaultOf(error).kind !== "too_large") throw error;
    // Two records were too large together, so the page has one record and another page follows.
    return { records: await read(1), size: 1, hasMore: true };
  }
}
