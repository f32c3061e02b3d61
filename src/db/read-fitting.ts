import { databaseFaultOf } from "./database-fault.ts";

/**
 * Reads as many records as fit into the limit of a connection, when all would be too large.
 *
 * @param read Reads the given number of first records.
 * @param more Number of rows that a read takes beyond the size.
 * @returns The records, and the size that was finally requested.
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
    // Tries the number of rows before the limit only once. These rows need not be the first records
    // of the page: related records come in any order, several for one record.
    const fitting = (fault.rows ?? size) - more;
    const quarter = Math.ceil(size / 4);
    const next = isFirst && fitting < size ? fitting : Math.min(fitting, quarter);
    return readFitting(Math.max(1, next), read, more, false);
  }
}
