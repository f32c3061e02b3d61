import type { Pool } from "pg";

/** Prisma gives its own error the code and the message of the driver's, and nothing else. */
export const resultTooLargeCode = "SVC_RESULT_TOO_LARGE";

class ResultTooLargeError extends Error {
  readonly code = resultTooLargeCode;

  constructor(limitBytes: number) {
    super(`The result of a statement is larger than ${limitBytes} bytes; http.memoryBudget bounds it.`);
    this.name = "ResultTooLargeError";
  }
}

/** How large the result of a statement may be. */
export interface ResultLimits {
  readonly maxResultBytes: number;
  /** The first row of a result may be larger than that, up to this. */
  readonly maxRowBytes: number;
}

/**
 * Fails every statement of the pool whose result is larger than the limits, while it arrives.
 * Neither the number of rows nor a column's type says how large they are. The connection is cut, as
 * the rest of the result would still come over it; the pool opens another one.
 *
 * The first row has a limit of its own: what is written in several requests may be larger than a
 * page, and would then end every list that it is in.
 */
export function limitResults(pool: Pool, { maxResultBytes, maxRowBytes }: ResultLimits): void {
  pool.on("connect", ({ connection }) => {
    let received = 0;
    let hasRow = false;
    connection.on("dataRow", () => {
      if (!hasRow && received > maxResultBytes) received = 0;
      hasRow = true;
    });
    connection.on("readyForQuery", () => {
      received = 0;
      hasRow = false;
    });
    // By chunks and not by rows: a row is there only as a whole, and may be of a gigabyte.
    connection.stream.prependListener("data", (chunk: Buffer) => {
      received += chunk.length;
      const limitBytes = hasRow ? maxResultBytes : Math.max(maxResultBytes, maxRowBytes);
      if (received > limitBytes) connection.stream.destroy(new ResultTooLargeError(limitBytes));
    });
  });
}
