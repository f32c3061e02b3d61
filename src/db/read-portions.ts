import type { Pool } from "pg";
import { createTurnBytes } from "../kit/turn-bytes.ts";

/** Counts up to the most bytes of results that all connections read at once. */
const isEnough = createTurnBytes(256 * 1024);

/**
 * Lets the process do other work between the parts of large results. Node.js reads up to 2 MB of a
 * connection in one turn of the event loop. Parsing that takes 25 to 50 ms, during which all
 * requests wait.
 */
export function readInPortions(pool: Pool): void {
  pool.on("connect", ({ connection: { stream } }) => {
    stream.on("data", (chunk: Buffer) => {
      if (!isEnough(chunk.length)) return;
      stream.pause();
      setImmediate(() => stream.resume());
    });
  });
}
