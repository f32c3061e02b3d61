import type { Actor } from "../kit/actor.ts";
import type { ApiContext } from "./state.ts";

/** The user of an authenticated request, as the audit trail names it. */
export function actorOf(ctx: ApiContext): Actor {
  const { caller, tokenId, requestId, clientAddress } = ctx.state;
  return { kind: "user", id: caller.id, tokenId, source: clientAddress, requestId };
}
