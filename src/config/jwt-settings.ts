import type { SettingValues } from "./settings.ts";

/** Settings of JWTs: their issuer, and the meaning of their claims. */
export interface JwtSettings {
  readonly issuer: string;
  readonly audience: readonly string[];
  /** Client id of the console at the issuer. Undefined: people sign in with tokens only. */
  readonly clientId: string | undefined;
  /** URL of the key set. Undefined: taken from the issuer's discovery document. */
  readonly jwksUrl: string | undefined;
  readonly algorithms: readonly string[];
  readonly userClaim: string;
  readonly nameClaim: string;
  readonly emailClaim: string;
  readonly adminClaim: string | undefined;
  readonly adminValue: string | undefined;
  /** Whether the first request of an unknown user creates the user. */
  readonly provision: boolean;
  /** CIDRs that the issuer may live in, in addition to public addresses. */
  readonly allowedNetworks: readonly string[];
}

/** Returns the settings of `auth.jwt`; undefined when they name no issuer. */
export function jwtSettingsOf(values: SettingValues): JwtSettings | undefined {
  const issuer = values["auth.jwt.issuer"];
  if (issuer === undefined) return undefined;
  return {
    issuer,
    audience: values["auth.jwt.audience"],
    clientId: values["auth.jwt.clientId"],
    jwksUrl: values["auth.jwt.jwksUrl"],
    algorithms: values["auth.jwt.algorithms"],
    userClaim: values["auth.jwt.userClaim"],
    nameClaim: values["auth.jwt.nameClaim"],
    emailClaim: values["auth.jwt.emailClaim"],
    adminClaim: values["auth.jwt.adminClaim"],
    adminValue: values["auth.jwt.adminValue"],
    provision: values["auth.jwt.provision"],
    allowedNetworks: values["auth.jwt.allowedNetworks"],
  };
}
