import { databaseFaultOf } from "./database-fault.ts";

/**
 * Reads as many records as a connection may hold, when all would be larger.
 *
 * @param read Reads the first so many.
 * @param more How many rows beyond the size a read takes.
 * @returns The records, and how many of them were asked for in the end.
 */
export async function readFitting<T>(
  size: number,
  read: (size: number) => Promise<readonly T[]>,
  more = 0,
  isFirst = true,
): Promise<{ readonly records: readonly T[]; readonly size: number }> {
  try {
    return { records: await read(size), size };
  } catch (error) {
    const fault = databaseFaultOf(error);
    if (fault.kind !== "too_large" || size === 1) throw error;
    // The number of rows before the limit is tried once. They need not be the first records of the
    // page: related records come in any order, several of one record.
    const fitting = (fault.rows ?? size) - more;
    const quarter = Math.ceil(size / 4);
    const next = isFirst && fitting < size ? fitting : Math.min(fitting, quarter);
    return readFitting(Math.max(1, next), read, more, false);
  }
}
