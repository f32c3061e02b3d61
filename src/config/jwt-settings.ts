import type { SettingValues } from "./settings.ts";

/** Settings of JWTs: their issuer, and the meaning of their claims. */
export type JwtSettings = NonNullable<ReturnType<typeof jwtSettingsOf>>;

/** Returns the settings of `auth.jwt`; undefined when they name no issuer. */
export function jwtSettingsOf(values: SettingValues) {
  const issuer = values["auth.jwt.issuer"];
  if (issuer === undefined) return undefined;
  return {
    issuer,
    audience: values["auth.jwt.audience"],
    /** Client id of the console at the issuer. Undefined: people sign in with tokens only. */
    clientId: values["auth.jwt.clientId"],
    /** URL of the key set. Undefined: taken from the issuer's discovery document. */
    jwksUrl: values["auth.jwt.jwksUrl"],
    algorithms: values["auth.jwt.algorithms"],
    userClaim: values["auth.jwt.userClaim"],
    nameClaim: values["auth.jwt.nameClaim"],
    emailClaim: values["auth.jwt.emailClaim"],
    adminClaim: values["auth.jwt.adminClaim"],
    adminValue: values["auth.jwt.adminValue"],
    /** Whether the first request of an unknown user creates the user. */
    provision: values["auth.jwt.provision"],
    /** CIDRs that the issuer may live in, in addition to public addresses. */
    allowedNetworks: values["auth.jwt.allowedNetworks"],
  } as const;
}
