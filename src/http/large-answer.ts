import type { ApiContext } from "./state.ts";

/** The JSON of an answer in pieces, which were encoded one by one. */
export class LargeAnswer {
  readonly pieces: readonly Uint8Array[];
  readonly bytes: number;

  constructor(pieces: readonly Uint8Array[]) {
    this.pieces = pieces;
    this.bytes = pieces.reduce((sum, { length }) => sum + length, 0);
  }
}

/**
 * Sends the answer without Koa, which would want it whole. What the client has not read waits as it
 * is.
 */
export function sendLarge(ctx: ApiContext, { pieces, bytes }: LargeAnswer): void {
  const { res } = ctx;
  ctx.length = bytes;
  ctx.respond = false;
  res.cork();
  for (const piece of pieces) res.write(piece);
  res.end();
  res.uncork();
}
