import type { Contradiction } from "./contradictions.ts";
import type { SettingKey, SettingValues } from "./settings.ts";

/** Whose JWTs are taken for tokens, and what their claims mean. */
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

/** Returns the same by key, each undefined when they name no issuer. */
export function jwtValues(jwt: JwtSettings | undefined): Readonly<Record<keyof JwtSettings, unknown>> {
  return {
    issuer: jwt?.issuer,
    audience: jwt?.audience,
    clientId: jwt?.clientId,
    jwksUrl: jwt?.jwksUrl,
    algorithms: jwt?.algorithms,
    userClaim: jwt?.userClaim,
    nameClaim: jwt?.nameClaim,
    emailClaim: jwt?.emailClaim,
    adminClaim: jwt?.adminClaim,
    adminValue: jwt?.adminValue,
    provision: jwt?.provision,
    allowedNetworks: jwt?.allowedNetworks,
  };
}

const unusedWithoutIssuer = [
  "auth.jwt.audience",
  "auth.jwt.clientId",
  "auth.jwt.jwksUrl",
  "auth.jwt.adminClaim",
  "auth.jwt.adminValue",
  "auth.jwt.allowedNetworks",
] as const;

/** Returns what is wrong with the settings of `auth.jwt` together. */
export function jwtContradictions(
  values: SettingValues,
  isGiven: (key: SettingKey) => boolean,
): readonly Contradiction[] {
  const fault = (key: SettingKey, message: string): Contradiction => ({
    keys: [key],
    inFileMessage: message,
    message: `${key}: ${message}`,
  });
  const issuer = values["auth.jwt.issuer"];
  if (issuer === undefined) {
    const unused = isGiven("auth.jwt.issuer") ? undefined : unusedWithoutIssuer.find(isGiven);
    return unused === undefined ? [] : [fault(unused, "needs auth.jwt.issuer")];
  }
  const found: Contradiction[] = [];
  // Tokens that the issuer made for other services must not be taken here.
  if (!isGiven("auth.jwt.audience"))
    found.push(fault("auth.jwt.issuer", "needs auth.jwt.audience, the name of this API at the issuer"));
  const [first, second] = (["auth.jwt.adminClaim", "auth.jwt.adminValue"] as const).filter(isGiven);
  if (first !== undefined && second === undefined)
    found.push(fault(first, "expected auth.jwt.adminClaim and auth.jwt.adminValue together"));
  const isPlain = [issuer, values["auth.jwt.jwksUrl"]].some((url) => url?.startsWith("http:") === true);
  if (isPlain && (values["auth.jwt.allowedNetworks"] ?? []).length === 0)
    found.push(fault("auth.jwt.issuer", "expected https; http is for an issuer in auth.jwt.allowedNetworks"));
  return found;
}
