import type { IncomingMessage } from "node:http";

/** Chunks of fewer bytes are put together. */
const small = 1024;
/** Bytes of a block of them. */
const blockBytes = 16 * 1024;

/**
 * Beyond so many small chunks they must have so many bytes on average. In less than `floodMs` they
 * take the thread from everybody: one that drips in slowly does no harm.
 */
const least = { chunks: 4096, bytes: 16, floodMs: 1000 };

/**
 * Puts the small chunks of a body together, also before anybody reads it. Node.js makes a buffer of
 * each, which takes 500 bytes and 5 us, and counts only what is in it. Six bodies of 1 MB in chunks
 * of a byte ended a process of 512 MB.
 *
 * Closes a connection, without an answer, whose chunks are tiny as a rule.
 *
 * @param onFlood Called in place of that when they came fast, and closes the connection. Node.js
 *   has up to 10,000 of them in one read, which takes 55 ms, and cannot be stopped in it.
 * @param now In ms, never going back.
 */
export function joinSmallChunks(
  request: IncomingMessage,
  { onFlood, now = () => performance.now() }: { readonly onFlood: () => void; readonly now?: () => number },
): void {
  const push = request.push.bind(request);
  /** Waits for others to join it. */
  let first: Buffer | undefined;
  /** Holds it and the others. */
  let block: Buffer | undefined;
  let filled = 0;
  let [chunks, bytes, beganAt] = [0, 0, 0];

  function pass(): boolean {
    if (first === undefined) return true;
    // A copy: what is left of a block would be kept with it.
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
