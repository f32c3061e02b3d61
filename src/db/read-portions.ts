import type { Pool } from "pg";
import { createTurnBytes } from "../kit/turn-bytes.ts";

/**
 * Smaller chunks are not counted, because each count costs a turn of the event loop. That was 7 %
 * of the CPU of `svc api` at 100 changes a second.
 */
const leastCounted = 16 * 1024;
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
      if (chunk.length < leastCounted || !isEnough(chunk.length)) return;
      stream.pause();
      setImmediate(() => stream.resume());
    });
  });
}
