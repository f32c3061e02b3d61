import type { ApiRouter } from "../http/state.ts";

/** Adds `GET whoami`, which returns the token's user. */
export function addWhoamiRoute(router: ApiRouter): void {
  router.get("/whoami", (ctx) => {
    const { id, name, email } = ctx.state.caller;
    ctx.body = { id, name, email };
  });
}
