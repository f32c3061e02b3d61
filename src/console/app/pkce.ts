import { timeLimit } from "../api/time-limit.ts";
import { place, type JwtPlace } from "./place.ts";

/** Tokens that the issuer returned for a code. */
export interface IssuedTokens {
  readonly token: string;
  readonly refreshToken: string | null;
}

/** Path below the console's to which the issuer redirects the browser. */
export const returnPath = "/signed-in";

const key = "svc-console.sign-in";
const channelName = "svc-console.sign-in";
/** Start of the `state` of a sign-in in its own window, which leaves the page as it is. */
const popupState = "popup.";

interface Pending {
  readonly state: string;
  readonly verifier: string;
  /** Path to open after the sign-in. */
  readonly path: string;
}

interface Returned {
  readonly state: string | null;
  readonly code: string | null;
  readonly error: string | null;
}

/** Redirects to the issuer, which returns to `path`. */
export async function signInByRedirect(path: string): Promise<void> {
  requireSecurePage();
  const pending: Pending = { state: randomText(), verifier: randomText(), path };
  sessionStorage.setItem(key, JSON.stringify(pending));
  location.assign(await authorizationUrl(pending));
}

/**
 * Signs in within a separate window. Throws when the issuer refuses, or on abort. A closed window
 * is not noticed, because the issuer may cut it off from this page.
 */
export async function signInByWindow(signal: AbortSignal): Promise<IssuedTokens> {
  requireSecurePage();
  const pending: Pending = { state: popupState + randomText(), verifier: randomText(), path: "/" };
  // Opens the window at once, while the browser still allows it because of the click.
  const opened = window.open("about:blank", "_blank", "popup,width=520,height=680");
  if (opened === null) throw new Error("The browser did not open the window. Allow it, and try again.");
  signal.addEventListener("abort", () => opened.close());
  opened.location.href = await authorizationUrl(pending);
  signal.throwIfAborted();
  const returned = await new Promise<Returned>((resolve, reject) => {
    const channel = new BroadcastChannel(channelName);
    channel.addEventListener("message", ({ data }: MessageEvent<Returned>) => {
      if (data.state !== pending.state) return;
      channel.close();
      resolve(data);
    });
    signal.addEventListener("abort", () => {
      channel.close();
      reject(new Error("The sign-in was left."));
    });
  });
  return await redeem(returned, pending);
}

/**
 * Completes a sign-in with the parameters that the issuer has sent back. Returns the tokens and the
 * next path. Returns null in a separate window, which passes the code to its opener and closes.
 */
export async function finishSignIn(): Promise<(IssuedTokens & { readonly path: string }) | null> {
  const search = new URLSearchParams(location.search);
  const returned: Returned = {
    state: search.get("state"),
    code: search.get("code"),
    error: search.get("error_description") ?? search.get("error"),
  };
  if (returned.state?.startsWith(popupState) === true) {
    const channel = new BroadcastChannel(channelName);
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- A channel has one origin.
    channel.postMessage(returned);
    channel.close();
    window.close();
    return null;
  }
  const pending = JSON.parse(sessionStorage.getItem(key) ?? "null") as Pending | null;
  sessionStorage.removeItem(key);
  if (pending === null) throw new Error("This sign-in was not begun in this tab. Begin again.");
  return { ...(await redeem(returned, pending)), path: pending.path };
}

/** Requests new tokens from the issuer. */
export async function refreshTokens(refreshToken: string): Promise<IssuedTokens> {
  return await requestTokens({ grant_type: "refresh_token", refresh_token: refreshToken });
}

async function redeem(returned: Returned, pending: Pending): Promise<IssuedTokens> {
  if (returned.state !== pending.state)
    throw new Error("The answer of the issuer belongs to another sign-in. Begin again.");
  if (returned.code === null) throw new Error(`The issuer refused: ${returned.error ?? "no reason given"}.`);
  return await requestTokens({
    grant_type: "authorization_code",
    code: returned.code,
    code_verifier: pending.verifier,
    redirect_uri: redirectUri(),
  });
}

async function authorizationUrl({ state, verifier }: Pending): Promise<string> {
  const jwt = issuer();
  const url = new URL((await discover()).authorization_endpoint);
  const parameters = {
    response_type: "code",
    client_id: jwt.clientId,
    redirect_uri: redirectUri(),
    scope: "openid profile email",
    state,
    code_challenge: await challengeOf(verifier),
    code_challenge_method: "S256",
    ...audienceOf(jwt),
  };
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  return url.href;
}

/**
 * Returns the parameters that name the API: `resource` of RFC 8707, which accepts only URIs, and
 * `audience` for other issuers.
 */
function audienceOf({ audience }: JwtPlace): Readonly<Record<string, string>> {
  if (typeof audience !== "string") return {};
  return URL.canParse(audience) ? { audience, resource: audience } : { audience };
}

async function requestTokens(parameters: Readonly<Record<string, string>>): Promise<IssuedTokens> {
  const jwt = issuer();
  const { audience: _, ...resource } = { audience: "", ...audienceOf(jwt) };
  const response = await ask((await discover()).token_endpoint, {
    method: "POST",
    body: new URLSearchParams({ ...parameters, ...resource, client_id: jwt.clientId }),
  });
  const body = await readJson(response);
  const token = body["access_token"];
  if (!response.ok || token === undefined)
    throw new Error(
      `The issuer gave no token: ${body["error_description"] ?? body["error"] ?? `it answers with the status ${response.status}`}.`,
    );
  return { token, refreshToken: body["refresh_token"] ?? null };
}

interface Discovery {
  readonly authorization_endpoint: string;
  readonly token_endpoint: string;
}

let discovery: Promise<Discovery> | null = null;

/** Returns the issuer's discovery document, which is read once, and again after a failure. */
async function discover(): Promise<Discovery> {
  discovery ??= readDiscovery().catch((error: unknown) => {
    discovery = null;
    throw error;
  });
  return await discovery;
}

async function readDiscovery(): Promise<Discovery> {
  const url = `${issuer().issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
  const wayOut = "Try again, or sign in with a token.";
  const response = await ask(url).catch((error: unknown) => {
    throw new Error(`The issuer does not answer. ${wayOut}`, { cause: error });
  });
  if (!response.ok)
    throw new Error(`The issuer answers with the status ${response.status} at ${url}. ${wayOut}`);
  const { authorization_endpoint: authorization, token_endpoint: token } = await readJson(response);
  if (authorization === undefined || token === undefined)
    throw new Error(`The issuer names no addresses for a sign-in at ${url}. ${wayOut}`);
  return { authorization_endpoint: authorization, token_endpoint: token };
}

/** Sends a request to the issuer, with the same time limit as for the service. */
async function ask(url: string, more: RequestInit = {}): Promise<Response> {
  return await fetch(url, { credentials: "omit", signal: AbortSignal.timeout(timeLimit), ...more });
}

async function readJson(response: Response): Promise<Readonly<Record<string, string | undefined>>> {
  const body = (await response.json().catch(() => null)) as Readonly<Record<string, string>> | null;
  return body ?? {};
}

function issuer(): JwtPlace {
  if (place.jwt === null) throw new Error("No issuer is set: auth.jwt.clientId.");
  return place.jwt;
}

function redirectUri(): string {
  return location.origin + place.basePath + returnPath;
}

function randomText(): string {
  return base64Url(crypto.getRandomValues(new Uint8Array(32)));
}

/** Throws when the browser offers no digest, which PKCE requires. */
function requireSecurePage(): void {
  if (!window.isSecureContext)
    throw new Error(
      "Browsers sign in at an issuer from pages over https only. Open the console over https, or sign in with a token.",
    );
}

async function challengeOf(verifier: string): Promise<string> {
  return base64Url(new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier))));
}

function base64Url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
}
