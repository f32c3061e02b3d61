import type { ApiRouter } from "../http/state.ts";
import { serviceActor } from "../kit/actor.ts";
import type { Identifier } from "../users/authenticate.ts";
import { createJwtVerifier } from "../users/jwt.ts";
import { createJwtIdentifier } from "../users/jwt-users.ts";
import { addTokenRoutes, addUserRoutes, addWhoamiRoute, type UserRoutesOptions } from "../users/routes.ts";
import { createUserStore } from "../users/store.ts";
import type { Configuration } from "./configuration.ts";
import type { Infrastructure } from "./infrastructure.ts";

/**
 * Adds the routes of users and tokens. Returns the identifier of JWTs; undefined when the settings
 * name no issuer.
 */
export function addUsers(
  router: ApiRouter,
  { sql, transact, keySourceOf }: Infrastructure,
  { config, definitions }: Configuration,
  options: Omit<UserRoutesOptions, "users" | "resources" | "issuer" | "maxTokensPerUser">,
): Identifier | undefined {
  const { jwt, maxTokensPerUser } = config.auth;
  const users = createUserStore({ sql, transact, actor: serviceActor("api") });
  const resources = [...definitions.keys()];
  const routes = { ...options, users, resources, issuer: jwt?.issuer, maxTokensPerUser };
  addWhoamiRoute(router);
  addTokenRoutes(router, routes);
  addUserRoutes(router, routes);
  if (jwt === undefined) return undefined;
  const verifier = createJwtVerifier({ ...jwt, keys: keySourceOf(jwt) });
  return createJwtIdentifier(jwt, verifier, users);
}
