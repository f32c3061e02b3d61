import { createHash } from "node:crypto";
import type { JwtSettings } from "../config/jwt-settings.ts";
import { setBounded } from "../kit/bounded-map.ts";
import { messageOf } from "../kit/errors.ts";
import type { Log } from "../telemetry/log.ts";
import { createFetchJson, type FetchJson } from "./fetch-json.ts";
import { parseUrl } from "../kit/parse-url.ts";

/** The public keys of an issuer (RFC 7517). */
export interface KeySet {
  /** Changes whenever the keys do. */
  readonly version: string;
  readonly keys: readonly Readonly<Record<string, unknown>>[];
}

/** Fetches and caches the keys of an issuer. Never rejects. */
export interface KeySource {
  /** Undefined while no set was ever fetched. */
  get(): Promise<KeySet | undefined>;
  /** Fetches the set again, for a token with an unknown key, at most once in 30 s. */
  renew(): Promise<KeySet | undefined>;
}

/** An unknown key makes at most one request in this time. */
const renewalMs = 30_000;
/** While no set is known at all, so that a start beside its issuer is soon over. */
const firstRetryMs = 2_000;
/** A key that the issuer has withdrawn is used no longer than this, while the issuer answers. */
const maxAgeMs = 600_000;
/**
 * A set that was not asked for in this time is not used before it is: after a night without JWTs, a
 * withdrawn key would pass once more. Under load it is fetched beside the requests.
 */
const quietMs = maxAgeMs + renewalMs;
/** Limits the requests that wait for one fetch: more would hold up those with known keys. */
const maxWaiting = 100;
const maxKeys = 100;

/**
 * Keeps the key set of an issuer. What is known stays in use while the issuer does not answer.
 *
 * @param jwksUrl Undefined: named by the issuer's discovery document (OpenID Connect Discovery).
 * @param now Monotonic clock, in ms.
 */
export function createKeySource({
  issuer,
  jwksUrl,
  fetchJson,
  log,
  now = () => performance.now(),
}: {
  readonly issuer: string;
  readonly jwksUrl: string | undefined;
  readonly fetchJson: FetchJson;
  readonly log: Pick<Log, "warn">;
  readonly now?: () => number;
}): KeySource {
  let known: KeySet | undefined;
  let askedAt = -Infinity;
  let fetchedAt = -Infinity;
  /** Whether every request waits for the fetch that is under way. */
  let isAwaited = false;
  let underway: Promise<void> | undefined;
  let waiting = 0;

  async function fetchSet(): Promise<void> {
    askedAt = now();
    try {
      known = keySetOf(await fetchJson(jwksUrl ?? (await discover(issuer, fetchJson))));
      fetchedAt = now();
    } catch (error) {
      log.warn(
        { event: "jwt.keys", reason: messageOf(error) },
        "the keys of the issuer could not be fetched",
      );
    }
    underway = undefined;
    isAwaited = false;
  }

  async function fetched(): Promise<KeySet | undefined> {
    if (waiting >= maxWaiting) return known;
    waiting += 1;
    await (underway ??= fetchSet());
    waiting -= 1;
    return known;
  }

  return {
    async get() {
      if (known === undefined)
        return underway !== undefined || now() - askedAt >= firstRetryMs ? fetched() : undefined;
      isAwaited ||= now() - askedAt >= quietMs;
      if (isAwaited) return fetched();
      const isDue = now() - fetchedAt >= maxAgeMs && now() - askedAt >= renewalMs;
      if (isDue) underway ??= fetchSet();
      return known;
    },
    async renew() {
      return underway !== undefined || now() - askedAt >= renewalMs ? fetched() : known;
    },
  };
}

/** Issuers of which the keys are kept: those of the configurations before, too. */
const maxSources = 4;

/**
 * Creates what gives the key source of an issuer, the same for the same settings: a reload keeps
 * the keys, whether the issuer answers or not.
 */
export function createKeySources({
  log,
}: {
  readonly log: Pick<Log, "warn">;
}): (settings: JwtSettings) => KeySource {
  const sources = new Map<string, KeySource>();
  return ({ issuer, jwksUrl, allowedNetworks }) => {
    const key = JSON.stringify([issuer, jwksUrl, allowedNetworks]);
    const source =
      sources.get(key) ??
      createKeySource({ issuer, jwksUrl, fetchJson: createFetchJson({ allowedNetworks }), log });
    setBounded(sources, [key, source], maxSources);
    return source;
  };
}

async function discover(issuer: string, fetchJson: FetchJson): Promise<string> {
  const found = await fetchJson(`${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`);
  const { issuer: named, jwks_uri: url } = (found ?? {}) as Readonly<Record<string, unknown>>;
  if (named !== issuer) throw new Error("The discovery document is that of another issuer.");
  const isFine = typeof url === "string" && parseUrl(url) !== undefined;
  // An issuer that is reached over TLS must not lead to a URL without it.
  if (!isFine || (issuer.startsWith("https:") && !url.startsWith("https:")))
    throw new Error("The discovery document has no jwks_uri that can be used.");
  return url;
}

/**
 * Private and symmetric keys have no place in a set: those of other kinds are left out. An empty
 * list counts: the issuer has withdrawn all its keys.
 */
function keySetOf(document: unknown): KeySet {
  const { keys } = (document ?? {}) as { readonly keys?: unknown };
  if (!Array.isArray(keys) || keys.length > maxKeys)
    throw new Error(`The key set is not a list of at most ${maxKeys} keys.`);
  const usable = (keys as readonly unknown[]).filter(isUsable);
  if (usable.length === 0 && keys.length > 0) throw new Error("The key set has no key for signatures.");
  return { version: createHash("sha256").update(JSON.stringify(usable)).digest("base64"), keys: usable };
}

function isUsable(key: unknown): key is Readonly<Record<string, unknown>> {
  if (typeof key !== "object" || key === null) return false;
  const { kty, use, d } = key as Readonly<Record<string, unknown>>;
  const isPublic = kty === "RSA" || kty === "EC" || kty === "OKP";
  return isPublic && d === undefined && (use === undefined || use === "sig");
}
