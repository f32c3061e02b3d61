import type { IncomingMessage } from "node:http";

/** Chunks of fewer bytes are joined. */
const small = 1024;
/** Bytes of a block of joined chunks. */
const blockBytes = 16 * 1024;

/**
 * After `chunks` small chunks, they must have `bytes` bytes on average. Chunks that all arrive
 * within `floodMs` block the thread for all requests. A body that arrives slowly does no harm.
 */
const least = { chunks: 4096, bytes: 16, floodMs: 1000 };

/**
 * Joins the small chunks of a body, also before the body is read. Node.js makes a buffer of each
 * chunk, which takes 500 bytes and 5 us. It only counts the content. Six bodies of 1 MB in chunks
 * of a byte ended a process of 512 MB.
 *
 * Closes, without an answer, a connection whose chunks are mostly tiny.
 *
 * @param onFlood Called instead of the close when the chunks came fast; closes the connection.
 *   Node.js has up to 10,000 of them in one read, which takes 55 ms and cannot be stopped.
 * @param now Monotonic clock, in ms.
 */
export function joinSmallChunks(
  request: IncomingMessage,
  { onFlood, now = () => performance.now() }: { readonly onFlood: () => void; readonly now?: () => number },
): void {
  const push = request.push.bind(request);
  /** The first small chunk, which waits for others. */
  let first: Buffer | undefined;
  /** A block with the first chunk and the others. */
  let block: Buffer | undefined;
  let filled = 0;
  let [chunks, bytes, beganAt] = [0, 0, 0];

  function pass(): boolean {
    if (first === undefined) return true;
    // Copies, because a slice would keep the rest of the block in memory.
    const joined = block === undefined ? first : Buffer.from(block.subarray(0, filled));
    first = undefined;
    block = undefined;
    return push(joined);
  }

  function gather(chunk: Buffer): boolean {
    if (first === undefined) {
      first = chunk;
      setImmediate(pass);
      return true;
    }
    if (block === undefined) {
      block = Buffer.allocUnsafe(blockBytes);
      filled = first.copy(block);
    }
    filled += chunk.copy(block, filled);
    return filled + small <= blockBytes || pass();
  }

  request.push = (chunk: Buffer | null) => {
    if (chunk === null || chunk.length >= small) {
      pass();
      return push(chunk);
    }
    if (chunks === 0) beganAt = now();
    chunks += 1;
    bytes += chunk.length;
    if (request.socket.destroyed) return true;
    if (chunks <= least.chunks || bytes >= chunks * least.bytes) return gather(chunk);
    if (now() - beganAt < least.floodMs) onFlood();
    else request.socket.destroy();
    return true;
  };
}
