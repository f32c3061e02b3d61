import type { Pool } from "pg";

/**
 * Code of the error. Prisma's own error only takes over the code and the message of the driver's
 * error.
 */
export const resultTooLargeCode = "SVC_RESULT_TOO_LARGE";

/** Thrown for a statement whose result is larger than an answer may be. */
export class ResultTooLargeError extends Error {
  readonly code = resultTooLargeCode;

  /** Number of complete rows received; undefined when not known. */
  readonly rows: number | undefined;

  constructor(limitBytes: number, rows?: number) {
    super(`The result of a statement is larger than ${limitBytes} bytes; http.memoryBudget bounds it.`);
    this.name = "ResultTooLargeError";
    this.rows = rows;
  }
}

/** Size limits of the result of a statement. */
export interface ResultLimits {
  readonly maxResultBytes: number;
  /** Most bytes of the first row, which may exceed `maxResultBytes`. */
  readonly maxRowBytes: number;
}

/**
 * Fails every statement of the pool whose result exceeds the limits, while it arrives. Neither the
 * number of rows nor a column's type shows how large they are. The connection is cut, because the
 * rest of the result would still arrive on it; the pool opens another one.
 *
 * The first row has its own limit. A record that several requests have written may be larger than a
 * page. It would fail every list that contains it.
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
    // Counts chunks instead of rows, because a row is only available as a whole and may have a
    // gigabyte.
    connection.stream.prependListener("data", (chunk: Buffer) => {
      received += chunk.length;
      const limitBytes = rows > 0 ? maxResultBytes : Math.max(maxResultBytes, maxRowBytes);
      if (received <= limitBytes) return;
      // The client learns of it before it reads the chunk, which may end the statement. The pool
      // would then give the connection to another statement, which would fail instead.
      connection.emit("error", new ResultTooLargeError(limitBytes, rows));
      connection.stream.destroy();
    });
  });
}
