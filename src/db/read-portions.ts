import type { Pool } from "pg";

/** Most bytes of results that a connection reads at once. */
const mostAtOnce = 256 * 1024;

/**
 * Lets the process do other work between the parts of a large result. Node.js reads up to 2 MB of a
 * connection in one turn of the event loop. Parsing that takes 25 to 50 ms, during which all
 * requests wait.
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
