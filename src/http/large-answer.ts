import { createTurnBytes } from "../kit/turn-bytes.ts";
import type { ApiContext } from "./state.ts";

/** The JSON of an answer in separately encoded pieces. */
export class LargeAnswer {
  readonly pieces: readonly Uint8Array[];
  readonly bytes: number;

  constructor(pieces: readonly Uint8Array[]) {
    this.pieces = pieces;
    this.bytes = pieces.reduce((sum, { length }) => sum + length, 0);
  }
}

/**
 * Counts up to the most bytes that all answers write at once: 2 MB took 30 ms, during which all
 * other requests wait.
 */
const isEnough = createTurnBytes(256 * 1024);

/**
 * Sends the answer without Koa, which would need it as a whole. Pieces that the client has not read
 * yet wait without a copy.
 */
export function sendLarge(ctx: ApiContext, { pieces, bytes }: LargeAnswer): void {
  const { res } = ctx;
  ctx.length = bytes;
  ctx.respond = false;
  let sent = 0;
  function sendSome(): void {
    if (res.destroyed) return;
    res.cork();
    for (let isOver = false; !isOver && sent < pieces.length; sent += 1) {
      const piece = pieces[sent] as Uint8Array;
      res.write(piece);
      isOver = isEnough(piece.length);
    }
    if (sent === pieces.length) res.end();
    else setImmediate(sendSome);
    res.uncork();
  }
  sendSome();
}
