import type { ApiContext } from "./state.ts";

/** The address that a request came from; undefined when its connection is gone. Behind a proxy it is the proxy's. */
export function clientAddressOf(ctx: Pick<ApiContext, "req">): string | undefined {
  return ctx.req.socket.remoteAddress;
}
