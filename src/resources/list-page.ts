import { databaseFaultOf } from "../db/prisma-errors.ts";

/** The part of a list that is asked for. */
export interface ListPart {
  readonly skip: number;
  readonly take: number;
  /** How many probably fit into one answer, where it is known that not all do. */
  readonly likely?: number | undefined;
}

export interface RecordPage {
  /** JSON of each record. */
  readonly records: readonly string[];
  /** How many were read for: fewer than asked for where those would be too large for one answer. */
  readonly size: number;
  /** Of all pages. */
  readonly total: number;
}

/**
 * Reads a page, a quarter of it at a time where the whole is larger than a connection may hold.
 *
 * @param read Reads as many records from `skip` on.
 */
export async function readPage(
  { skip, take, likely = take }: ListPart,
  {
    read,
    count,
  }: {
    readonly read: (size: number) => Promise<readonly string[]>;
    readonly count: () => Promise<number>;
  },
): Promise<RecordPage> {
  const find = async (size: number): Promise<Omit<RecordPage, "total">> => {
    try {
      return { records: await read(size), size };
    } catch (error) {
      if (databaseFaultOf(error).kind !== "too_large" || size === 1) throw error;
      return find(Math.ceil(size / 4));
    }
  };
  if (skip > 0) {
    const [found, total] = await Promise.all([find(Math.min(take, likely)), count()]);
    return { ...found, total };
  }
  // Most lists fit on their first page, which then is the count.
  const found = await find(Math.min(take, likely));
  const isWhole = found.records.length < found.size;
  return { ...found, total: isWhole ? found.records.length : await count() };
}
