import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import {
  exportJWK,
  generateKeyPair,
  SignJWT,
  type CryptoKey,
  type JWK,
  type JWTHeaderParameters,
} from "jose";
import { Provider } from "oidc-provider";

/** Audience of the API at the issuer. */
export const audience = "orders-api";

/** A client of the issuer, and additional claims of its tokens. */
interface IssuerClient {
  readonly id: string;
  readonly claims?: Readonly<Record<string, unknown>>;
  /** Redirect URI of a public client for sign-ins by browser; undefined for a program. */
  readonly redirectUri?: string;
}

/** A signing key of the issuer. */
export interface IssuerKey {
  readonly jwk: JWK & { readonly kid: string; readonly alg: string };
  readonly privateKey: CryptoKey;
}

/** A real OpenID provider on loopback, with known private keys. */
export interface Issuer {
  readonly url: string;
  /** Returns the number of requests for the key set. */
  readonly keyRequests: () => number;
  /**
   * Requests a token from the provider, by the grant of client credentials (RFC 6749, section 4.4).
   */
  token(client: string, scope?: string): Promise<string>;
  /** Signs a token in the test, with the provider's key by default. */
  sign(
    claims?: Readonly<Record<string, unknown>>,
    header?: Partial<JWTHeaderParameters>,
    key?: Parameters<SignJWT["sign"]>[0],
  ): Promise<string>;
  /** Signs the given text of claims; for ES256. */
  signText(claims: string): Promise<string>;
  key(): IssuerKey;
  /** Changes the signing key; the previous one is not published any more. */
  rotate(alg?: string): Promise<void>;
  /** Adds a client. Ends all sign-ins at the issuer. */
  register(client: IssuerClient): void;
  /** Replaces the provider's answers; undefined restores the provider. */
  answerWith(listener: RequestListener | undefined): void;
  stop(): Promise<void>;
}

async function makeKey(alg: string): Promise<IssuerKey> {
  const { privateKey } = await generateKeyPair(alg, { extractable: true });
  const kid = `${alg}-${Math.random().toString(36).slice(2)}`;
  return { privateKey, jwk: { ...(await exportJWK(privateKey)), kid, alg, use: "sig" } };
}

const programs = {
  client_secret: "secret",
  grant_types: ["client_credentials"],
  response_types: [],
  redirect_uris: [],
};

/** Returns the registration of a browser client, which keeps no secret. */
function peopleAt(redirectUri: string): object {
  return {
    application_type: "native",
    token_endpoint_auth_method: "none",
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    redirect_uris: [redirectUri],
  };
}

function providerFor(url: string, key: IssuerKey, clients: readonly IssuerClient[]): RequestListener {
  const provider = new Provider(url, {
    jwks: { keys: [key.jwk] },
    clients: clients.map(({ id, redirectUri }) => ({
      client_id: id,
      id_token_signed_response_alg: key.jwk.alg,
      ...(redirectUri === undefined ? programs : peopleAt(redirectUri)),
    })),
    // A browser client requests its tokens from another origin.
    clientBasedCORS: () => true,
    issueRefreshToken: () => true,
    scopes: ["openid", "email", "read", "write", "admin", "webhooks", "notes:read", "notes:write", "profile"],
    extraTokenClaims: (_ctx: unknown, { clientId }: { readonly clientId: string }) =>
      clients.find(({ id }) => id === clientId)?.claims,
    features: {
      devInteractions: { enabled: clients.some(({ redirectUri }) => redirectUri !== undefined) },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => `urn:${audience}`,
        getResourceServerInfo: () => ({
          audience,
          scope: "read write admin webhooks notes:read notes:write profile",
          accessTokenFormat: "jwt",
          jwt: { sign: { alg: key.jwk.alg } },
        }),
      },
    },
  });
  return provider.callback();
}

/** Starts a provider with its clients. */
export async function startIssuer(clients: readonly IssuerClient[], alg = "ES256"): Promise<Issuer> {
  const registered = [...clients];
  let key = await makeKey(alg);
  let keyRequests = 0;
  let answering: RequestListener | undefined;
  let provider: RequestListener;
  const server: Server = createServer((request, response) => {
    if (request.url?.startsWith("/jwks") === true) keyRequests += 1;
    (answering ?? provider)(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  provider = providerFor(url, key, registered);

  return {
    url,
    keyRequests: () => keyRequests,
    key: () => key,
    async token(client, scope) {
      const response = await fetch(`${url}/token`, {
        method: "POST",
        headers: { authorization: `Basic ${Buffer.from(`${client}:secret`).toString("base64")}` },
        body: new URLSearchParams({
          grant_type: "client_credentials",
          ...(scope === undefined ? {} : { scope }),
        }),
      });
      const answer = (await response.json()) as { readonly access_token?: string };
      if (answer.access_token === undefined) throw new Error(JSON.stringify(answer));
      return answer.access_token;
    },
    async sign(claims = {}, header = {}, signer = key.privateKey) {
      const seconds = Math.floor(Date.now() / 1000);
      return new SignJWT({ iss: url, aud: audience, sub: "sam", iat: seconds, exp: seconds + 300, ...claims })
        .setProtectedHeader({ alg: key.jwk.alg, kid: key.jwk.kid, typ: "JWT", ...header })
        .sign(signer);
    },
    async signText(claims) {
      const head = JSON.stringify({ alg: "ES256", kid: key.jwk.kid });
      const signed = [head, claims].map((part) => Buffer.from(part).toString("base64url")).join(".");
      const algorithm = { name: "ECDSA", hash: "SHA-256" };
      const signature = await crypto.subtle.sign(algorithm, key.privateKey, Buffer.from(signed));
      return `${signed}.${Buffer.from(signature).toString("base64url")}`;
    },
    async rotate(other = alg) {
      key = await makeKey(other);
      provider = providerFor(url, key, registered);
    },
    register(client) {
      registered.push(client);
      provider = providerFor(url, key, registered);
    },
    answerWith(listener) {
      answering = listener;
    },
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
