import { createHmac } from "node:crypto";
import { expect } from "chai";
import type { PoolClient } from "pg";
import { exportJWK, exportSPKI, generateKeyPair, importJWK, SignJWT, UnsecuredJWT } from "jose";
import { openConfiguration } from "../../src/app/configuration.ts";
import { call } from "../support/http.ts";
import { audience, startIssuer, type Issuer, type IssuerKey } from "../support/issuer.ts";
import { notesYaml } from "../support/notes.ts";
import { request, startService, type Answer, type TestService } from "../support/service.ts";
import { testJwtSettings } from "./test-jwt-settings.ts";

const clients = [
  { id: "ada", claims: { name: "Ada Lovelace", email: "ada@example.com", email_verified: true } },
  { id: "bob", claims: { name: "Bob", email: "bob@example.com" } },
  { id: "root", claims: { realm_access: { roles: ["user", "boss"] } } },
  { id: "twin", claims: { email: "TAKEN@example.com", email_verified: true } },
  { id: "both" },
];

const seconds = (): number => Math.floor(Date.now() / 1000);
const other = async () => (await generateKeyPair("ES256")).privateKey;

function replaceHeader(token: string, header: object): string {
  const [, ...rest] = token.split(".");
  return [Buffer.from(JSON.stringify(header)).toString("base64url"), ...rest].join(".");
}

function hmacToken(issuer: Issuer, secret: string): string {
  const head = { alg: "HS256", kid: issuer.key().jwk.kid, typ: "JWT" };
  const claims = { iss: issuer.url, aud: audience, sub: "root", exp: seconds() + 60 };
  const text = [head, claims].map((one) => Buffer.from(JSON.stringify(one)).toString("base64url")).join(".");
  return `${text}.${createHmac("sha256", secret).update(text).digest("base64url")}`;
}

describe("JWTs over HTTP", () => {
  let issuer: Issuer;
  let service: TestService;

  before(async () => {
    issuer = await startIssuer(clients);
    service = await startService({
      mode: "servers",
      resources: { "notes.yaml": notesYaml },
      http: { authFailureLimit: { count: 10_000, windowMs: 60_000 } },
      auth: {
        maxTokensPerUser: 100,
        jwt: testJwtSettings(issuer, {
          algorithms: ["ES256", "RS256", "EdDSA"],
          adminClaim: "realm_access.roles",
          adminValue: "boss",
        }),
      },
    });
  });

  after(async () => {
    await service.stop();
    await issuer.stop();
  });

  const ask = (token: string, method: string, path: string, body?: unknown): Promise<Answer> =>
    request({ url: service.baseUrl + path, method, token, body });
  const whoami = (token: string): Promise<Answer> => ask(token, "GET", "/whoami");
  const usersOf = (subject: string) => service.prisma.user.findMany({ where: { subject } });

  describe("a token of the issuer", () => {
    it("makes its user at the first request, and finds it at later ones", async () => {
      const [first, second] = [
        await whoami(await issuer.token("ada")),
        await whoami(await issuer.token("ada")),
      ];

      expect(first.status).to.equal(200);
      expect(first.body).to.include({ name: "Ada Lovelace", email: "ada@example.com" });
      expect(second.body).to.deep.equal(first.body);
      const users = await usersOf("ada");
      expect(users.map(({ issuer: from, isAdmin }) => [from, isAdmin])).to.deep.equal([[issuer.url, false]]);
    });

    it("makes one user for concurrent requests", async () => {
      const token = await issuer.token("both");

      const answers = await Promise.all(Array.from({ length: 8 }, () => whoami(token)));

      expect(new Set(answers.map(({ status }) => status))).to.deep.equal(new Set([200]));
      expect(await usersOf("both")).to.have.length(1);
    });

    it("accepts no e-mail address that the issuer has not verified", async () => {
      const { body } = await whoami(await issuer.token("bob"));

      expect(body.name).to.equal("Bob");
      expect(body.email).to.match(/^[0-9a-f]{32}@users\.invalid$/);
    });

    it("gets no existing user by its e-mail address, until an admin links them", async () => {
      const prisma = service.prisma;
      const { id } = await prisma.user.create({ data: { name: "Taken", email: "taken@example.com" } });
      const token = await issuer.token("twin");

      const refused = await whoami(token);
      expect([refused.status, refused.body.message]).to.deep.equal([401, "Unauthenticated."]);
      expect(refused.headers.get("www-authenticate")).to.contain("Another user has the e-mail address");

      const admin = await service.createUser({ isAdmin: true });
      expect((await admin.request("PUT", `/users/${id}`, { subject: "twin" })).status).to.equal(200);
      expect((await whoami(token)).body.id).to.equal(id);
    });

    it("does not link an existing user by a token with fewer scopes than *", async () => {
      const admin = await service.createUser({ isAdmin: true });
      const { token } = await service.api.tokens.issue({ userId: admin.id, name: "x", scopes: ["admin"] });

      const linked = await ask(token, "PUT", `/users/${admin.id}`, { subject: "thief" });
      const made = await ask(token, "POST", "/users", { name: "x", email: "x@x.example", subject: "thief" });

      expect([linked.status, made.status]).to.deep.equal([403, 403]);
      expect(linked.body.message).to.equal("This token lacks the scope *.");
      expect(await usersOf("thief")).to.deep.equal([]);
    });

    it("is limited by its scopes where they are named like ours, and by no others", async () => {
      const [read, unnamed] = [await issuer.token("ada", "notes:read"), await issuer.token("ada", "profile")];
      const create = (token: string) => ask(token, "POST", "/resources/notes", { text: "x" });

      expect((await create(read)).body.message).to.equal("This token lacks the scope notes:write.");
      expect((await ask(read, "GET", "/resources/notes")).status).to.equal(200);
      expect((await create(unnamed)).status).to.equal(201);
    });

    it("makes an admin by its claim, for itself only", async () => {
      const answer = await ask(await issuer.token("root"), "GET", "/users");
      const limited = await ask(await issuer.token("root", "read"), "GET", "/users");

      expect([answer.status, limited.status]).to.deep.equal([200, 403]);
      expect((await usersOf("root"))[0]?.isAdmin).to.equal(false);
      expect((await ask(await issuer.sign({ sub: "root" }), "GET", "/users")).status).to.equal(403);
    });

    it("changes users as an admin by its claim, which is not stored", async () => {
      const ada = await service.createUser();

      const answer = await ask(await issuer.token("root"), "PATCH", `/users/${ada.id}`, { name: "Ada L." });

      expect([answer.status, answer.body.name]).to.deep.equal([200, "Ada L."]);
    });

    it("is refused once its user is disabled", async () => {
      const token = await issuer.sign({ sub: "gone" });
      const { body } = await whoami(token);
      const admin = await service.createUser({ isAdmin: true });
      await admin.request("PUT", `/users/${body.id}`, { is_disabled: true });

      const answer = await whoami(token);

      expect(answer.status).to.equal(401);
      expect(answer.headers.get("www-authenticate")).to.contain("The user is disabled");
    });

    it("makes tokens that end with it", async () => {
      const token = await issuer.token("ada");
      const exp = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()).exp as number;

      const made = await ask(token, "POST", "/tokens", { name: "x" });

      expect(made.status).to.equal(201);
      expect(made.body.parent_id).to.equal(null);
      expect(Date.parse(made.body.expires_at)).to.equal(exp * 1000);
    });

    it("that ends after the last date, such as one in milliseconds, makes tokens that end with the last date", async () => {
      const token = await issuer.sign({ sub: "late", exp: Date.now() });

      const made = await ask(token, "POST", "/tokens", { name: "x" });

      expect([made.status, made.body.expires_at]).to.deep.equal([201, "9999-12-31T23:59:59.999+00:00"]);
    });
  });

  describe("an attack", () => {
    const attacks: Readonly<Record<string, () => Promise<string> | string>> = {
      "another audience": () => issuer.sign({ aud: "other-api" }),
      "no audience": () => issuer.sign({ aud: undefined }),
      "another issuer": () => issuer.sign({ iss: "http://127.0.0.1:1" }),
      "the issuer with a slash": () => issuer.sign({ iss: `${issuer.url}/` }),
      "no issuer": () => issuer.sign({ iss: undefined }),
      "a time to come": () => issuer.sign({ nbf: seconds() + 120 }),
      "no end": () => issuer.sign({ exp: undefined }),
      "an end that is text": () => issuer.sign({ exp: "tomorrow" }),
      "no subject": () => issuer.sign({ sub: undefined }),
      "an empty subject": () => issuer.sign({ sub: "" }),
      "a subject that is a number": () => issuer.sign({ sub: 1 }),
      "a subject with a NUL": () => issuer.sign({ sub: "a\0b" }),
      "a long subject": () => issuer.sign({ sub: "a".repeat(256) }),
      "another type": () => issuer.sign({}, { typ: "logout+jwt" }),
      "an unknown key": async () => issuer.sign({}, { kid: "other" }, await other()),
      "the key id of the issuer, and another key": async () => issuer.sign({}, {}, await other()),
      "a key id from the file system": async () =>
        issuer.sign({}, { kid: "../../../dev/null" }, await other()),
      "a key id that is SQL": async () => issuer.sign({}, { kid: "' OR 1=1 --" }, await other()),
      "its own key in the header": async () => {
        const { publicKey, privateKey } = await generateKeyPair("ES256", { extractable: true });
        return issuer.sign({}, { jwk: await exportJWK(publicKey) }, privateKey);
      },
      "the address of its own keys": async () =>
        issuer.sign({}, { jku: "https://evil.example.com/jwks", kid: "evil" }, await other()),
      "an unknown critical header": async () =>
        new SignJWT({ iss: issuer.url, aud: audience, sub: "ada", exp: seconds() + 60 })
          .setProtectedHeader({ alg: "ES256", kid: issuer.key().jwk.kid, crit: ["x"], x: 1 })
          .sign(issuer.key().privateKey, { crit: { x: true } }),
      "no signature": () =>
        new UnsecuredJWT({ sub: "ada", aud: audience })
          .setIssuer(issuer.url)
          .setExpirationTime("1m")
          .encode(),
      "alg none with a signature": async () => replaceHeader(await issuer.sign(), { alg: "none" }),
      "HMAC with the public key": async () => {
        const { d: _private, ...publicJwk } = issuer.key().jwk;
        const pem = await exportSPKI((await importJWK(publicJwk, "ES256")) as IssuerKey["privateKey"]);
        return hmacToken(issuer, pem);
      },
      "HMAC with the key set's text": () => hmacToken(issuer, JSON.stringify(issuer.key().jwk)),
      "HMAC with nothing": () => hmacToken(issuer, ""),
      "the signature of zeros (CVE-2022-21449)": async () => {
        const [head, claims] = (await issuer.sign()).split(".");
        return `${head}.${claims}.${Buffer.alloc(64).toString("base64url")}`;
      },
      "other claims under a signature": async () => {
        const [head, , signature] = (await issuer.sign()).split(".");
        const { sub: _sub, ...claims } = { sub: "", iss: issuer.url, aud: audience, exp: seconds() + 60 };
        const text = JSON.stringify({ ...claims, sub: "root" });
        return `${head}.${Buffer.from(text).toString("base64url")}.${signature}`;
      },
      "a huge token": () => issuer.sign({ filler: "x".repeat(8000) }),
      "claims that are no JSON": async () => (await issuer.sign()).replace(/\.[^.]+\./, ".bm90IGpzb24."),
      "a header that is no JSON": () => "bm90IGpzb24.e30.AAAA",
      "five parts": async () => `${await issuer.sign()}.a.b`,
    };

    for (const [what, make] of Object.entries(attacks)) {
      it(`by ${what} gets the 401 of every invalid token`, async () => {
        const answer = await whoami(await make());

        expect([answer.status, answer.body.message]).to.deep.equal([401, "Unauthenticated."]);
        expect(answer.headers.get("www-authenticate")).to.equal('Bearer error="invalid_token"');
      });
    }

    it("by an expired token gets that reason, since its signature was valid", async () => {
      const answer = await whoami(await issuer.sign({ exp: seconds() - 31 }));
      const forged = await whoami(await issuer.sign({ exp: seconds() - 31 }, {}, await other()));

      expect(answer.headers.get("www-authenticate")).to.contain('error_description="The token has expired"');
      expect(forged.headers.get("www-authenticate")).to.equal('Bearer error="invalid_token"');
    });

    it("by claims named like parts of an object changes nothing", async () => {
      const token =
        await issuer.signText(`{"iss":"${issuer.url}","aud":"${audience}","sub":"proto","exp":${seconds() + 60},
        "__proto__":{"realm_access":{"roles":["boss"]}},"constructor":{"prototype":{"isAdmin":true}}}`);

      expect((await whoami(token)).status).to.equal(200);
      expect((await ask(token, "GET", "/users")).status).to.equal(403);
      expect(({} as Record<string, unknown>)["isAdmin"]).to.equal(undefined);
    });

    it("makes no user", async () => {
      expect(await usersOf("root")).to.have.length(1);
      expect(await service.prisma.user.count({ where: { subject: "" } })).to.equal(0);
    });

    it("by two headers, one of them valid, gets 401", async () => {
      const answer = await call(service.api.port, "/svc-api/whoami", {
        headers: { authorization: `Bearer ${await issuer.sign()}, Bearer x` },
      });

      expect(answer.status).to.equal(401);
    });
  });

  it("accepts a token without a key id while one key fits", async () => {
    expect((await whoami(await issuer.sign({}, { kid: undefined as unknown as string }))).status).to.equal(
      200,
    );
  });

  it("accepts clocks that differ by less than 30 s", async () => {
    expect((await whoami(await issuer.sign({ exp: seconds() - 20, nbf: seconds() + 20 }))).status).to.equal(
      200,
    );
  });

  it("continues with its keys while the issuer is away", async () => {
    issuer.answerWith((_request, response) => response.writeHead(503).end());
    try {
      expect((await whoami(await issuer.sign())).status).to.equal(200);
      const unknown = await issuer.sign({}, { kid: "rotated" });
      expect((await whoami(unknown)).status).to.equal(401);
    } finally {
      issuer.answerWith(undefined);
    }
  });

  it("keeps the keys at a reload, also while the issuer is away", async () => {
    const { api, infrastructure } = service;
    expect((await whoami(await issuer.sign())).status).to.equal(200);
    issuer.answerWith((_request, response) => response.writeHead(503).end());
    try {
      api.prepare(await openConfiguration(api.configuration(), infrastructure))();

      expect((await whoami(await issuer.sign())).status).to.equal(200);
    } finally {
      issuer.answerWith(undefined);
    }
  });

  it("repeats the answer of an Idempotency-Key after a reload without the issuer", async () => {
    const { api, baseUrl, infrastructure } = service;
    const admin = await service.createUser({ isAdmin: true });
    const body = { name: "Once", email: "once@example.com", subject: "once" };
    const headers = { "Idempotency-Key": "once" };
    const make = (): Promise<Answer> =>
      request({ url: `${baseUrl}/users`, method: "POST", token: admin.token, body, headers });
    const before = api.configuration();
    const reload = async (auth: typeof before.config.auth): Promise<void> => {
      const checked = { ...before, config: { ...before.config, auth } };
      api.prepare(await openConfiguration(checked, infrastructure))();
    };
    const first = await make();
    await reload({ maxTokensPerUser: 100, jwt: undefined });
    try {
      const again = await make();

      expect([first.status, again.status]).to.deep.equal([201, 201]);
      expect(again.body).to.deep.equal(first.body);
    } finally {
      await reload(before.config.auth);
    }
  });

  it("queries the issuer at most once in 30 s, for any key ids of tokens", async () => {
    const before = issuer.keyRequests();
    for (let index = 0; index < 20; index++) await whoami(await issuer.sign({}, { kid: `random-${index}` }));

    expect(issuer.keyRequests() - before).to.be.below(2);
  });

  it("takes one statement for a known user, and no signature check for a known token", async () => {
    const token = await issuer.sign();
    await whoami(token);
    const statements: string[] = [];
    const { pool } = service.infrastructure.database;
    const watch = (client: PoolClient): void => {
      const query = client.query.bind(client) as (...args: readonly unknown[]) => unknown;
      client.query = ((...args: readonly [{ readonly text: string }]) => {
        statements.push(args[0].text);
        client.query = query as typeof client.query;
        return query(...args);
      }) as typeof client.query;
    };
    pool.on("acquire", watch);
    try {
      await whoami(token);
    } finally {
      pool.off("acquire", watch);
    }

    // A worker reads replays at any time.
    const own = statements.filter((text) => !text.includes("FROM svc.replays"));
    expect(own).to.have.length(1);
    expect(own[0]).to.contain("issuer = $1");
  });
});
