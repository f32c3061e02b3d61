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

/**
 * Fails every statement of the pool whose result is larger than `limitBytes`, while it arrives.
 * Neither the number of rows nor a column's type says how large they are. The connection is cut, as
 * the rest of the result would still come over it; the pool opens another one.
 */
export function limitResults(pool: Pool, limitBytes: number): void {
  pool.on("connect", ({ connection }) => {
    let received = 0;
    connection.on("readyForQuery", () => (received = 0));
    // By chunks and not by rows: a row is there only as a whole, and may be of a gigabyte.
    connection.stream.on("data", (chunk: Buffer) => {
      received += chunk.length;
      if (received > limitBytes) connection.stream.destroy(new ResultTooLargeError(limitBytes));
    });
  });
}
