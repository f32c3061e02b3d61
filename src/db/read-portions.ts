import type { Pool } from "pg";

/** Bytes of results that a connection reads in one go. */
const mostAtOnce = 256 * 1024;

/**
 * Lets the process do other work between the parts of a large result. Node.js reads up to 2 MB of a
 * connection in one turn of the event loop. To parse that takes 25 to 50 ms, and all requests wait.
 */
export function readInPortions(pool: Pool): void {
  pool.on("connect", ({ connection: { stream } }) => {
    let read = 0;
    stream.on("data", (chunk: Buffer) => {
      read += chunk.length;
      if (read < mostAtOnce) return;
      read = 0;
      stream.pause();
      setImmediate(() => stream.resume());
    });
  });
}
