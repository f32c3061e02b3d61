import { expect } from "chai";
import type { JwtSettings } from "../../src/config/settings.ts";
import type { Identifier } from "../../src/users/authenticate.ts";
import { createFetchJson } from "../../src/users/fetch-json.ts";
import { createJwtVerifier } from "../../src/users/jwt.ts";
import { createJwtIdentifier } from "../../src/users/jwt-users.ts";
import { createKeySource } from "../../src/users/key-set.ts";
import { createUserStore } from "../../src/users/store.ts";
import { testOperator } from "../support/actors.ts";
import { openCoreDatabase, type CoreDatabase } from "../support/core-database.ts";
import { createMemoryLog } from "../support/http.ts";
import { startIssuer, type Issuer } from "../support/issuer.ts";
import { testJwtSettings } from "./test-jwt-settings.ts";

describe("createJwtIdentifier", () => {
  let core: CoreDatabase;
  let issuer: Issuer;

  before(async () => {
    core = await openCoreDatabase();
    issuer = await startIssuer([]);
  });

  after(async () => {
    await issuer.stop();
    await core.close();
  });

  /** Returns the identifier of one process. */
  function identifierWith(changes: Partial<JwtSettings> = {}): Identifier {
    const settings = testJwtSettings(issuer, { jwksUrl: `${issuer.url}/jwks`, ...changes });
    const keys = createKeySource({
      ...settings,
      fetchJson: createFetchJson(settings),
      log: createMemoryLog().log,
    });
    return createJwtIdentifier(
      settings,
      createJwtVerifier({ ...settings, keys }),
      createUserStore({ ...core, actor: testOperator }),
    );
  }

  it("makes one user in two processes at once", async () => {
    const identifiers = [identifierWith(), identifierWith()];
    const tokens = await Promise.all(["a", "b", "c"].map((jti) => issuer.sign({ sub: "race", jti })));

    const found = await Promise.all(identifiers.flatMap((one) => tokens.map((token) => one.identify(token))));

    expect(found.map(({ kind }) => kind)).to.deep.equal(Array.from({ length: 6 }, () => "known"));
    expect(await core.prisma.user.count({ where: { subject: "race" } })).to.equal(1);
  });

  it("makes none where that is off, and finds existing ones", async () => {
    const one = identifierWith({ provision: false });
    await identifierWith().identify(await issuer.sign({ sub: "there" }));

    expect(await one.identify(await issuer.sign({ sub: "there" }))).to.include({ kind: "known" });
    expect(await one.identify(await issuer.sign({ sub: "nobody" }))).to.deep.equal({
      kind: "refused",
      code: "user.unknown",
      reason: "There is no user for this token",
    });
    expect(await core.prisma.user.count({ where: { subject: "nobody" } })).to.equal(0);
  });

  it("treats users of two issuers with one subject as two", async () => {
    const data = { name: "Other", email: "other@example.com", issuer: "https://other", subject: "same" };
    const other = await core.prisma.user.create({ data });

    const identity = await identifierWith().identify(await issuer.sign({ sub: "same" }));

    expect(identity.kind === "known" && identity.caller.id).not.to.equal(other.id);
  });

  it("counts a token of a disabled user among the failures of its address", async () => {
    const one = identifierWith();
    const token = await issuer.sign({ sub: "gone" });
    await one.identify(token);
    expect(one.wasFound(token)).to.equal(true);
    await core.sql("UPDATE svc.users SET disabled_at = now() WHERE subject = 'gone'");

    expect(await one.identify(token)).to.include({ code: "user.disabled" });
    expect(one.wasFound(token)).to.equal(false);
  });

  for (const [what, claims, changes, isAdmin] of [
    ["its value", { role: "boss" }, {}, true],
    ["a list that holds it", { role: ["user", "boss"] }, {}, true],
    ["another value", { role: "bosses" }, {}, false],
    ["text that holds it", { role: "user boss" }, {}, false],
    ["an object", { role: { boss: "boss" } }, {}, false],
    ["true for the setting true", { role: true }, { adminValue: "true" }, true],
    ["true for another setting", { role: true }, {}, false],
    [
      "a name with dots",
      { "https://x.example/role": "boss" },
      { adminClaim: "https://x.example/role" },
      true,
    ],
    ["a way through text", { role: "boss" }, { adminClaim: "role.length", adminValue: "4" }, false],
    ["a name that objects have", {}, { adminClaim: "constructor.name", adminValue: "Object" }, false],
  ] as const)
    it(`${isAdmin ? "makes" : "does not make"} an admin by ${what}`, async () => {
      const one = identifierWith({ adminClaim: "role", adminValue: "boss", ...changes });

      const identity = await one.identify(await issuer.sign({ sub: "role", ...claims }));

      expect(identity.kind === "known" && identity.caller.isAdmin).to.equal(isAdmin);
    });

  it("keeps the user's flag, with any claim", async () => {
    await identifierWith().identify(await issuer.sign({ sub: "flag" }));
    await core.sql("UPDATE svc.users SET is_admin = true WHERE subject = 'flag'");

    const identity = await identifierWith({ adminClaim: "role", adminValue: "boss" }).identify(
      await issuer.sign({ sub: "flag" }),
    );

    expect(identity.kind === "known" && identity.caller.isAdmin).to.equal(true);
  });

  for (const [what, claims, name, email] of [
    ["without a name", {}, "profile", /@users\.invalid$/],
    [
      "with a name that ends within a surrogate pair",
      { name: `${"a".repeat(254)}😀` },
      "a".repeat(254),
      /@users\.invalid$/,
    ],
    ["with control characters in the name", { name: "A\r\nb" }, "A  b", /@users\.invalid$/],
    ["with a name that is no text", { name: { a: 1 } }, "profile", /@users\.invalid$/],
    ["with an address that is none", { email: "x", email_verified: true }, "profile", /@users\.invalid$/],
    [
      "with an address verified by text",
      { email: "y@y.example", email_verified: "true" },
      "profile",
      /invalid$/,
    ],
    ["with a verified address", { email: "z@z.example", email_verified: true }, "profile", /^z@z\.example$/],
  ] as const)
    it(`makes a user ${what}`, async () => {
      await core.sql("DELETE FROM svc.users WHERE subject = 'profile'");

      const identity = await identifierWith().identify(await issuer.sign({ sub: "profile", ...claims }));

      const caller = identity.kind === "known" ? identity.caller : undefined;
      expect(caller?.name).to.equal(name);
      expect(caller?.email).to.match(email);
    });
});
