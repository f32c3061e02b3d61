import type { Pool } from "pg";

/** Prisma gives its own error the code and the message of the driver's, and nothing else. */
export const resultTooLargeCode = "SVC_RESULT_TOO_LARGE";

/** Why a statement failed: its result is larger than an answer may be. */
export class ResultTooLargeError extends Error {
  readonly code = resultTooLargeCode;

  /** How many had come as a whole; undefined where that is not known. */
  readonly rows: number | undefined;

  constructor(limitBytes: number, rows?: number) {
    super(`The result of a statement is larger than ${limitBytes} bytes; http.memoryBudget bounds it.`);
    this.name = "ResultTooLargeError";
    this.rows = rows;
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
 * The first row has a limit of its own. A record of several requests may be larger than a page, and
 * would end every list that it is in.
 */
export function limitResults(pool: Pool, { maxResultBytes, maxRowBytes }: ResultLimits): void {
  pool.on("connect", ({ connection }) => {
    let received = 0;
    let rows = 0;
    connection.on("dataRow", () => {
      if (rows === 0 && received > maxResultBytes) received = 0;
      rows += 1;
    });
    connection.on("readyForQuery", () => {
      received = 0;
      rows = 0;
    });
    // By chunks and not by rows: a row is there only as a whole, and may be of a gigabyte.
    connection.stream.prependListener("data", (chunk: Buffer) => {
      received += chunk.length;
      const limitBytes = rows > 0 ? maxResultBytes : Math.max(maxResultBytes, maxRowBytes);
      if (received > limitBytes) connection.stream.destroy(new ResultTooLargeError(limitBytes, rows));
    });
  });
}
