import { expect } from "chai";
import { createFetchJson, type FetchJson } from "../../src/users/fetch-json.ts";
import { createJwtVerifier, type JwtVerifier } from "../../src/users/jwt.ts";
import { createKeySource, type KeySet, type KeySource } from "../../src/users/key-set.ts";
import { createMemoryLog } from "../support/http.ts";
import { audience, startIssuer, type Issuer } from "../support/issuer.ts";
import { until } from "../support/wait.ts";

const algorithms = ["ES256", "RS256", "EdDSA"];
const fetchJson = createFetchJson({ allowedNetworks: ["127.0.0.0/8"] });
const { log, lines } = createMemoryLog();

function verifierOf(issuer: Issuer, keys: KeySource, now?: () => number): JwtVerifier {
  const options = { issuer: issuer.url, audience: [audience], algorithms, keys };
  return createJwtVerifier(now === undefined ? options : { ...options, now });
}

function keysOf(issuer: Issuer, now: () => number): KeySource {
  return createKeySource({ issuer: issuer.url, jwksUrl: undefined, fetchJson, log, now });
}

describe("createJwtVerifier", () => {
  for (const alg of algorithms)
    it(`verifies ${alg} by the keys of the discovery document`, async () => {
      const issuer = await startIssuer([{ id: "ada", claims: { tier: "gold" } }], alg);
      try {
        const verifier = verifierOf(
          issuer,
          keysOf(issuer, () => 0),
        );

        const result = await verifier.verify(await issuer.token("ada", "read"));

        expect(result).to.include({ kind: "verified" });
        if (result.kind !== "verified") return;
        expect(result.scopes).to.deep.equal(["read"]);
        expect(result.claims).to.include({ tier: "gold", sub: "ada" });
        expect(Object.getPrototypeOf(result.claims)).to.equal(null);
        expect(Object.isFrozen(result.claims)).to.equal(true);
      } finally {
        await issuer.stop();
      }
    });

  it("keeps each of the service's scopes once, however many a token has", async () => {
    const issuer = await startIssuer([]);
    try {
      const verifier = verifierOf(
        issuer,
        keysOf(issuer, () => 0),
      );
      const scopes = Array.from({ length: 101 }, (_, index) => `r${index}:read`);
      const exp = Math.floor(Date.now() / 1000) + 60;
      const claims = {
        iss: issuer.url,
        aud: audience,
        exp,
        scope: "openid r0:read",
        scp: [...scopes, ["x:read"], 1],
      };

      const result = await verifier.verify(await issuer.signText(JSON.stringify(claims)));

      expect(result).to.deep.include({ kind: "verified", scopes });
    } finally {
      await issuer.stop();
    }
  });

  it("treats claims named like parts of an object as plain claims", async () => {
    const issuer = await startIssuer([]);
    try {
      const verifier = verifierOf(
        issuer,
        keysOf(issuer, () => 0),
      );
      const exp = Math.floor(Date.now() / 1000) + 60;
      const token = await issuer.signText(
        `{"iss":"${issuer.url}","aud":"${audience}","exp":${exp},"__proto__":{"a":1},"constructor":"x"}`,
      );

      const result = await verifier.verify(token);

      const claims = result.kind === "verified" ? result.claims : {};
      expect(Object.keys(claims).toSorted()).to.deep.equal(["aud", "constructor", "exp", "iss"]);
      expect([claims["constructor"], claims["toString"], claims["a"]]).to.deep.equal([
        "x",
        undefined,
        undefined,
      ]);
    } finally {
      await issuer.stop();
    }
  });

  describe("with an issuer that changes its keys", () => {
    let issuer: Issuer;
    let seconds: number;
    let verifier: JwtVerifier;

    beforeEach(async () => {
      issuer = await startIssuer([]);
      seconds = 0;
      verifier = verifierOf(
        issuer,
        keysOf(issuer, () => seconds * 1000),
      );
    });

    afterEach(() => issuer.stop());

    const kindOf = async (token: string): Promise<string> => (await verifier.verify(token)).kind;

    it("accepts a token of the new key after 30 s, and then none of the old one", async () => {
      const old = await issuer.sign();
      expect(await kindOf(old)).to.equal("verified");
      await issuer.rotate();
      const fresh = await issuer.sign();

      seconds = 29;
      expect([await kindOf(fresh), await kindOf(old)]).to.deep.equal(["invalid", "verified"]);
      seconds = 31;
      expect(await kindOf(fresh)).to.equal("verified");
      // Its cached answer was dropped with the key.
      expect(verifier.wasVerified(old)).to.equal(false);
      expect(await kindOf(old)).to.equal("invalid");
    });

    it("queries once for many concurrent tokens of an unknown key", async () => {
      await kindOf(await issuer.sign());
      await issuer.rotate();
      seconds = 31;
      const before = issuer.keyRequests();
      const tokens = await Promise.all(Array.from({ length: 20 }, (_, index) => issuer.sign({ index })));

      const kinds = await Promise.all(tokens.map(kindOf));

      expect(new Set(kinds)).to.deep.equal(new Set(["verified"]));
      expect(issuer.keyRequests() - before).to.equal(1);
    });

    it("drops a withdrawn key after ten minutes, even if no token has another", async () => {
      const old = await issuer.sign();
      await kindOf(old);
      await issuer.rotate();
      seconds = 601;

      // The first one starts the fetch, and does not wait for it.
      expect(await kindOf(old)).to.equal("verified");
      await kindOf(await issuer.sign());
      expect(await kindOf(old)).to.equal("invalid");
    });

    it("accepts no token of a withdrawn key after a quiet time, not even the first", async () => {
      const old = await issuer.sign();
      await kindOf(old);
      await issuer.rotate();
      seconds = 3600;

      expect(await kindOf(old)).to.equal("invalid");
    });

    it("waits once for an issuer that no longer answers, and then uses its known keys", async () => {
      const old = await issuer.sign();
      await kindOf(old);
      let asked = 0;
      issuer.answerWith((_request, response) => {
        asked += 1;
        // The first one fails; nothing waits for the others.
        if (asked === 1) response.writeHead(500).end();
      });
      seconds = 3600;

      expect(await kindOf(old)).to.equal("verified");
      seconds = 3700;
      expect(await kindOf(old)).to.equal("verified");
      await until(() => asked === 2, { what: "the next request" });
    });

    it("has no key when the issuer has withdrawn all", async () => {
      const old = await issuer.sign();
      expect(await kindOf(old)).to.equal("verified");
      issuer.answerWith(({ url = "" }, response) =>
        response.end(
          JSON.stringify(
            url === "/jwks" ? { keys: [] } : { issuer: issuer.url, jwks_uri: `${issuer.url}/jwks` },
          ),
        ),
      );
      seconds = 601;
      await kindOf(old);

      await until(async () => (await kindOf(old)) === "invalid", { what: "the empty set" });
    });

    it("caches no token whose key was withdrawn during its check", async () => {
      const setNow = async () => (await keysOf(issuer, () => 0).get()) as KeySet;
      let set = await setNow();
      const old = await issuer.sign();
      await issuer.rotate();
      const [setAfter, fresh] = [await setNow(), await issuer.sign()];
      const keys: KeySource = { get: () => Promise.resolve(set), renew: () => Promise.resolve(set) };
      verifier = verifierOf(issuer, keys);

      const checked = verifier.verify(old);
      // It has its set after one turn, and its signature is checked after many.
      await Promise.resolve();
      set = setAfter;
      expect(await kindOf(fresh)).to.equal("verified");

      expect((await checked).kind).to.equal("verified");
      expect(verifier.wasVerified(old)).to.equal(false);
      expect(await kindOf(old)).to.equal("invalid");
    });

    it("reports that it has no keys while the issuer has never answered, and finds them later", async () => {
      issuer.answerWith((_request, response) => response.writeHead(500).end());
      const token = await issuer.sign();
      expect(await kindOf(token)).to.equal("no_keys");
      issuer.answerWith(undefined);

      seconds = 1;
      expect(await kindOf(token)).to.equal("no_keys");
      seconds = 3;
      expect(await kindOf(token)).to.equal("verified");
    });

    it("checks no signature for a cached token, until it expires", async () => {
      let reads = 0;
      const set: KeySet = { version: "1", keys: [] };
      const counting: KeySource = {
        get: async () => ((reads += 1), (await keysOf(issuer, () => 0).get()) ?? set),
        renew: () => Promise.resolve(undefined),
      };
      let nowMs = Date.now();
      const known = verifierOf(issuer, counting, () => nowMs);
      const token = await issuer.sign();

      const first = await known.verify(token);
      expect(await known.verify(token)).to.equal(first);
      expect([known.wasVerified(token), reads]).to.deep.equal([true, 2]);
      nowMs += 328_000;
      expect(known.wasVerified(token)).to.equal(true);
      nowMs += 3_000;
      expect((await known.verify(token)).kind).to.equal("expired");
      expect(known.wasVerified(token)).to.equal(false);
    });
  });
});

describe("createKeySource", () => {
  const url = "https://login.example.com";
  const key = { kty: "EC", crv: "P-256", x: "x", y: "y", kid: "1" };

  const sourceOf = (answers: FetchJson): KeySource =>
    createKeySource({ issuer: url, jwksUrl: `${url}/keys`, fetchJson: answers, log, now: () => 0 });

  for (const [what, document] of [
    ["is no object", null],
    ["has no list", { keys: {} }],
    ["has more than 100 keys", { keys: Array.from({ length: 101 }, () => key) }],
    ["has secrets only", { keys: [{ kty: "oct", k: "secret" }] }],
    ["has private keys only", { keys: [{ ...key, d: "d" }] }],
    ["has keys for encryption only", { keys: [{ ...key, use: "enc" }] }],
  ] as const)
    it(`takes no set that ${what}`, async () => {
      expect(await sourceOf(() => Promise.resolve(document)).get()).to.equal(undefined);
    });

  it("keeps only public signature keys of a set", async () => {
    const set = await sourceOf(() => Promise.resolve({ keys: [{ kty: "oct", k: "s" }, key, null] })).get();

    expect(set?.keys).to.deep.equal([key]);
  });

  for (const [what, document] of [
    ["of another issuer", { issuer: "https://evil.example.com", jwks_uri: `${url}/keys` }],
    ["without a jwks_uri", { issuer: url }],
    ["that leads away from TLS", { issuer: url, jwks_uri: "http://login.example.com/keys" }],
    ["that is none", "text"],
  ] as const)
    it(`accepts no discovery document ${what}`, async () => {
      const asked: string[] = [];
      const source = createKeySource({
        issuer: url,
        jwksUrl: undefined,
        log,
        fetchJson(one) {
          asked.push(one);
          return Promise.resolve(document);
        },
      });

      expect(await source.get()).to.equal(undefined);
      expect(asked).to.deep.equal([`${url}/.well-known/openid-configuration`]);
      expect(lines.at(-1)).to.include({ event: "jwt.keys" });
    });

  it("accepts a discovery document that stays on TLS", async () => {
    const asked: string[] = [];
    const source = createKeySource({
      issuer: url,
      jwksUrl: undefined,
      log,
      fetchJson: async (one) => (
        asked.push(one),
        one.endsWith("/keys") ? { keys: [key] } : { issuer: url, jwks_uri: `${url}/keys` }
      ),
    });

    expect((await source.get())?.keys).to.deep.equal([key]);
    expect(asked).to.deep.equal([`${url}/.well-known/openid-configuration`, `${url}/keys`]);
  });

  it("fetches after two seconds without a set, and known keys after ten minutes", async () => {
    let [nowMs, asked] = [50_000, 0];
    const source = createKeySource({
      issuer: url,
      jwksUrl: `${url}/keys`,
      log,
      now: () => nowMs,
      async fetchJson() {
        asked += 1;
        if (asked === 1) throw new Error("away");
        return { keys: [key] };
      },
    });
    const counts: number[] = [];
    for (const waitMs of [0, 1_999, 1, 599_999, 1]) {
      nowMs += waitMs;
      await source.get();
      counts.push(asked);
    }

    expect(counts).to.deep.equal([1, 1, 2, 2, 3]);
  });

  it("fetches for unknown keys after half a minute at the earliest", async () => {
    let [nowMs, asked] = [50_000, 0];
    const source = createKeySource({
      issuer: url,
      jwksUrl: `${url}/keys`,
      log,
      now: () => nowMs,
      fetchJson: async () => ((asked += 1), { keys: [key] }),
    });
    await source.get();
    const counts: number[] = [];
    for (const waitMs of [29_999, 1, 29_999, 1]) {
      nowMs += waitMs;
      await source.renew();
      counts.push(asked);
    }

    expect(counts).to.deep.equal([1, 2, 2, 3]);
  });

  it("lets at most 100 requests wait for one fetch", async () => {
    const answers: ((document: unknown) => void)[] = [];
    const source = sourceOf(() => new Promise((resolve) => answers.push(resolve)));

    const waiting = Array.from({ length: 101 }, () => source.get());
    const last = await waiting[100];
    for (const answer of answers) answer({ keys: [key] });

    expect(last).to.equal(undefined);
    expect((await Promise.all(waiting.slice(0, 100))).every((set) => set !== undefined)).to.equal(true);
  });
});
