import type { Duplex } from "node:stream";

/**
 * Most bytes of TLS itself until the first answer: certificates and the heads of records. OpenSSL
 * takes 10 us for a change of keys, or a record, of 25 bytes.
 */
const mostBytes = 64 * 1024;
/** The same for each later answer: room for a head that is sent byte by byte. */
const mostPerAnswer = 16 * 1024;
const checkMs = 50;

/** Returns the bytes read below TLS; 0 for other connections. Only Node's own handle has them. */
export function bytesBelowTls(socket: Duplex): number {
  const { _handle: handle } = socket as Handled;
  return handle?._parent?.bytesRead ?? 0;
}

interface Handled {
  readonly bytesRead?: number;
  readonly _handle?: { readonly _parent?: { readonly bytesRead: number } } | null;
}

/**
 * Ends a TLS connection whose receiver sends next to nothing but TLS: new keys, tickets, or records
 * of a byte. No limit of HTTP applies to these, and they took the whole thread until the time
 * limit.
 *
 * @param onExcess Called when it ends the connection.
 */
export function limitOverhead(socket: Duplex, onExcess: () => void): void {
  const overhead = (): number => bytesBelowTls(socket) - ((socket as Handled).bytesRead ?? 0);
  let most = mostBytes;
  const timer = setInterval(() => {
    if (overhead() <= most) return;
    socket.destroy(Object.assign(new Error(code), { code }));
    onExcess();
  }, checkMs).unref();
  // An agent does this after each answer.
  socket.on("free", () => (most = overhead() + mostPerAnswer));
  socket.once("close", () => clearInterval(timer));
}

const code = "ERR_TLS_OVERHEAD";
