import type { SettingValues } from "./settings.ts";

/** Which issuer's JWTs are accepted as tokens, and what their claims mean. */
export interface JwtSettings {
  readonly issuer: string;
  readonly audience: readonly string[];
  /** Name of the console at the issuer; undefined: people sign in with tokens only. */
  readonly clientId: string | undefined;
  /** Undefined: from the issuer's discovery document. */
  readonly jwksUrl: string | undefined;
  readonly algorithms: readonly string[];
  readonly userClaim: string;
  readonly nameClaim: string;
  readonly emailClaim: string;
  readonly adminClaim: string | undefined;
  readonly adminValue: string | undefined;
  /** Whether an unknown user is made at the first request. */
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
    audience: values["auth.jwt.audience"] ?? [],
    clientId: values["auth.jwt.clientId"],
    jwksUrl: values["auth.jwt.jwksUrl"],
    algorithms: values["auth.jwt.algorithms"],
    userClaim: values["auth.jwt.userClaim"],
    nameClaim: values["auth.jwt.nameClaim"],
    emailClaim: values["auth.jwt.emailClaim"],
    adminClaim: values["auth.jwt.adminClaim"],
    adminValue: values["auth.jwt.adminValue"],
    provision: values["auth.jwt.provision"],
    allowedNetworks: values["auth.jwt.allowedNetworks"] ?? [],
  };
}
