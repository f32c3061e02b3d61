import { createHash } from "node:crypto";
import type { JwtSettings } from "../config/settings.ts";
import { setBounded } from "../kit/bounded-map.ts";
import { messageOf } from "../kit/errors.ts";
import { isObject } from "../kit/is-object.ts";
import type { Log } from "../telemetry/log.ts";
import { createFetchJson, type FetchJson } from "./fetch-json.ts";
import { parseUrl } from "../kit/parse-url.ts";

/** The public keys of an issuer (RFC 7517). */
export interface KeySet {
  /** Changes whenever the keys do. */
  readonly version: string;
  readonly keys: readonly Readonly<Record<string, unknown>>[];
}

/** Source of the keys of an issuer, which fetches and caches them. Never rejects. */
export interface KeySource {
  /** Returns the keys; undefined until a set has been fetched. */
  get(): Promise<KeySet | undefined>;
  /** Fetches the set again, for a token with an unknown key, at most once in 30 s. */
  renew(): Promise<KeySet | undefined>;
}

/** Minimum time between two fetches for unknown keys. */
const renewalMs = 30_000;
/**
 * Minimum time between fetches without any known set, so that a start beside its issuer is soon
 * complete.
 */
const firstRetryMs = 2_000;
/** Limit of the age of a set: while the issuer answers, a withdrawn key is not used for longer. */
const maxAgeMs = 600_000;
/**
 * Time after which an unused set is fetched again before its next use. Otherwise, a withdrawn key
 * would be accepted once more after a night without JWTs. Under load, the set is fetched in the
 * background.
 */
const quietMs = maxAgeMs + renewalMs;
/** Limits the requests that wait for one fetch: more would delay requests with known keys. */
const maxWaiting = 100;
const maxKeys = 100;

/**
 * Creates the source of an issuer's keys. A known set stays in use while the issuer does not
 * answer.
 *
 * @param jwksUrl Undefined: taken from the issuer's discovery document (OpenID Connect Discovery).
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
  /** Whether every request waits for the current fetch. */
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

/** Limit of the issuers whose keys are kept, including those of previous configurations. */
const maxSources = 4;

/**
 * Creates a function that returns the key source of an issuer. It returns the same source for the
 * same settings. So a reload keeps the keys, whether the issuer answers or not.
 */
export function createKeySources(log: Pick<Log, "warn">): (settings: JwtSettings) => KeySource {
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
  // An issuer that is reached over TLS must not lead to a URL without TLS.
  if (!isFine || (issuer.startsWith("https:") && !url.startsWith("https:")))
    throw new Error("The discovery document has no jwks_uri that can be used.");
  return url;
}

/**
 * Returns the usable keys of a document. Leaves out private and symmetric keys, which do not belong
 * in a set. An empty list is valid: the issuer has withdrawn all its keys.
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
  if (!isObject(key)) return false;
  const { kty, use, d } = key;
  const isPublic = kty === "RSA" || kty === "EC" || kty === "OKP";
  return isPublic && d === undefined && (use === undefined || use === "sig");
}
