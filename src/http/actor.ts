import type { Actor } from "../actor.ts";
import { clientAddressOf } from "./client-address.ts";
import type { ApiContext } from "./state.ts";

/** The user of an authenticated request, as the audit trail names it. */
export function actorOf(ctx: ApiContext): Actor {
  const { caller, tokenId, requestId } = ctx.state;
  return { kind: "user", id: caller.id, tokenId, source: clientAddressOf(ctx), requestId };
}
