import type { ApiRouter } from "../http/state.ts";

/** `GET whoami`: the token's user (specification, 4.2). */
export function addWhoamiRoute(router: ApiRouter): void {
  router.get("/whoami", (ctx) => {
    const { id, name, email } = ctx.state.caller;
    ctx.body = { id, name, email };
  });
}
