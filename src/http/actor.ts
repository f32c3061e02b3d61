import type { Actor } from "../kit/actor.ts";
import type { ApiContext } from "./state.ts";

/** Returns the user of an authenticated request as the actor of the audit trail. */
export function actorOf(ctx: ApiContext): Actor {
  const { caller, tokenId, requestId, clientAddress } = ctx.state;
  const user = { kind: "user", id: caller.id, source: clientAddress, requestId } as const;
  return tokenId === undefined ? user : { ...user, tokenId };
}
