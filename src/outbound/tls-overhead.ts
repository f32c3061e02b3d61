import type { Duplex } from "node:stream";

/** Returns the bytes read below TLS; 0 for other connections. Only Node's own handle has them. */
export function bytesBelowTls(socket: Duplex): number {
  const { _handle: handle } = socket as Handled;
  return handle?._parent?.bytesRead ?? 0;
}

interface Handled {
  readonly _handle?: { readonly _parent?: { readonly bytesRead: number } } | null;
}
