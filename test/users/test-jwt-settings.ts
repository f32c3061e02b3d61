import type { JwtSettings } from "../../src/config/settings.ts";
import { audience, type Issuer } from "../support/issuer.ts";

/** Settings that accept the JWTs of a test's issuer, which is on loopback. */
export function testJwtSettings({ url }: Pick<Issuer, "url">, changes: Partial<JwtSettings>): JwtSettings {
  return {
    issuer: url,
    audience: [audience],
    clientId: undefined,
    jwksUrl: undefined,
    algorithms: ["ES256"],
    userClaim: "sub",
    nameClaim: "name",
    emailClaim: "email",
    adminClaim: undefined,
    adminValue: undefined,
    provision: true,
    allowedNetworks: ["127.0.0.0/8"],
    ...changes,
  };
}
