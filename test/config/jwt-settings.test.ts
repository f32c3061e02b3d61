import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import type { JwtSettings } from "../../src/config/settings.ts";
import { loadConfig } from "../../src/config/load.ts";
import { OperatorError } from "../../src/kit/errors.ts";

/** Reads settings of `auth.jwt`, written as a YAML flow map. */
function read(jwt: string): JwtSettings | undefined | readonly string[] {
  const folder = mkdtempSync(join(tmpdir(), "svc-jwt-"));
  try {
    writeFileSync(join(folder, "service.yaml"), `auth:\n  jwt: { ${jwt} }\n`);
    return loadConfig({ env: { SVC_CONFIG_DIR: folder }, cwd: folder, program: "all" }).auth.jwt;
  } catch (error) {
    if (error instanceof OperatorError) return error.faults;
    throw error;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const issuer = "issuer: https://login.example.com/realms/shop";
const audience = "audience: [api]";

describe("auth.jwt", () => {
  it("is off without an issuer", () => {
    expect(read("")).to.equal(undefined);
    expect(read("provision: false")).to.equal(undefined);
  });

  it("needs an issuer and an audience, and has defaults for the rest", () => {
    expect(read(`${issuer}, ${audience}`)).to.deep.equal({
      issuer: "https://login.example.com/realms/shop",
      audience: ["api"],
      clientId: undefined,
      jwksUrl: undefined,
      algorithms: ["RS256", "PS256", "ES256", "EdDSA"],
      userClaim: "sub",
      nameClaim: "name",
      emailClaim: "email",
      adminClaim: undefined,
      adminValue: undefined,
      provision: true,
      allowedNetworks: [],
    });
  });

  for (const [what, text, fault] of [
    ["no audience", issuer, "needs auth.jwt.audience"],
    ["an audience alone", audience, "needs auth.jwt.issuer"],
    ["a console alone", "clientId: console", "needs auth.jwt.issuer"],
    ["an empty audience", `${issuer}, audience: []`, "expected a list of at least one"],
    ["the algorithm none", `${issuer}, ${audience}, algorithms: [none]`, "expected one of RS256"],
    ["HMAC", `${issuer}, ${audience}, algorithms: [RS256, HS256]`, "expected one of RS256"],
    ["no algorithm", `${issuer}, ${audience}, algorithms: []`, "expected a list of at least one"],
    ["a claim without its value", `${issuer}, ${audience}, adminClaim: role`, "adminValue together"],
    ["a value without its claim", `${issuer}, ${audience}, adminValue: boss`, "adminValue together"],
    ["an issuer without TLS", `issuer: "http://login.example.com", ${audience}`, "expected https"],
    ["keys without TLS", `${issuer}, ${audience}, jwksUrl: "http://x.example/k"`, "expected https"],
    ["an issuer with a query", `issuer: "https://x.example/?a=1", ${audience}`, "expected a URL such as"],
    ["a user name in the issuer", `issuer: "https://a:b@x.example", ${audience}`, "expected a URL such as"],
  ] as const)
    it(`refuses ${what}`, () => {
      expect(JSON.stringify(read(text))).to.contain(fault);
    });

  it("accepts an issuer without TLS in an allowed network", () => {
    const text = `issuer: "http://keycloak.auth.svc:8080/realms/a", ${audience}, allowedNetworks: [10.0.0.0/8]`;

    expect(read(text)).to.include({ issuer: "http://keycloak.auth.svc:8080/realms/a" });
  });

  it("is read from the environment alone, lists with commas", () => {
    const env = {
      SVC_JWT_ISSUER: "https://login.example.com",
      SVC_JWT_AUDIENCE: "api, admin-api",
      SVC_JWT_PROVISION: "false",
      SVC_JWT_ADMIN_CLAIM: "roles",
      SVC_JWT_ADMIN_VALUE: "boss",
    };

    expect(loadConfig({ env, cwd: tmpdir(), program: "all" }).auth.jwt).to.deep.include({
      issuer: "https://login.example.com",
      audience: ["api", "admin-api"],
      provision: false,
      adminClaim: "roles",
      adminValue: "boss",
    });
  });
});
