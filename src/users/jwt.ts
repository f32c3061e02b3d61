import { createHash } from "node:crypto";
import {
  createLocalJWKSet,
  decodeProtectedHeader,
  errors,
  jwtVerify,
  type JSONWebKeySet,
  type JWTPayload,
  type JWTVerifyGetKey,
} from "jose";
import { setBounded } from "../kit/bounded-map.ts";
import type { Caller } from "../kit/caller.ts";
import { isScope } from "../kit/scopes.ts";
import type { KeySet, KeySource } from "./key-set.ts";

export interface VerifiedJwt {
  readonly kind: "verified";
  readonly claims: Caller["claims"];
  readonly scopes: readonly string[];
  readonly expiresAt: Date;
}

/** Result of a verification. `no_keys`: the keys of the issuer could not be fetched yet. */
type JwtResult = VerifiedJwt | { readonly kind: "expired" | "invalid" | "no_keys" };

/** Verifies JWTs of one issuer. */
export interface JwtVerifier {
  /** Verifies a token. Checks its signature once, as long as the keys do not change. */
  verify(token: string): Promise<JwtResult>;
  wasVerified(token: string): boolean;
  /** Forgets a token that its user may not use, as if it had never been verified. */
  forget(token: string): void;
}

/** Tolerated difference between the issuer's clock and this one. */
const clockToleranceSeconds = 30;
/**
 * Limit of the tokens whose signature needs no second check: at 2 to 8 KiB each, they take about 16
 * MB at most.
 */
const maxVerified = 2_000;
/**
 * Latest end of a token. A later one, such as an end in milliseconds, has no form that clients read
 * (RFC 3339).
 */
const lastMs = Date.parse("9999-12-31T23:59:59.999Z");
/**
 * Accepted types. `at+jwt` is from RFC 9068. Others of the same issuer, such as `logout+jwt`, are
 * not access tokens.
 */
const types = [undefined, "jwt", "at+jwt", "application/jwt", "application/at+jwt"];

/**
 * Creates a verifier. Keys come from the issuer only. From a token's header, only the key id is
 * used.
 *
 * @param algorithms Algorithms with public keys only; a token names one of them.
 * @param now Clock, in ms since 1970.
 */
export function createJwtVerifier({
  issuer,
  audience,
  algorithms,
  keys,
  now = Date.now,
}: {
  readonly issuer: string;
  readonly audience: readonly string[];
  readonly algorithms: readonly string[];
  readonly keys: KeySource;
  readonly now?: () => number;
}): JwtVerifier {
  /** Verified tokens by hash, the most recently used one at the end. */
  const verified = new Map<string, VerifiedJwt>();
  let version: string | undefined;
  let getKey: JWTVerifyGetKey;

  /** Forgets the tokens that other keys have verified. */
  function useKeySet(set: KeySet): JWTVerifyGetKey {
    if (set.version === version) return getKey;
    verified.clear();
    version = set.version;
    getKey = createLocalJWKSet({ keys: set.keys } as unknown as JSONWebKeySet);
    return getKey;
  }

  async function check(token: string, set: KeySet): Promise<JwtResult | "unknown key"> {
    try {
      const { payload } = await jwtVerify(token, useKeySet(set), {
        issuer,
        audience: [...audience],
        algorithms: [...algorithms],
        clockTolerance: clockToleranceSeconds,
        currentDate: new Date(now()),
        requiredClaims: ["exp"],
      });
      return resultOf(payload);
    } catch (error) {
      if (error instanceof errors.JWKSNoMatchingKey) return "unknown key";
      // jose checks the signature, the issuer and the audience before the expiry.
      return { kind: error instanceof errors.JWTExpired ? "expired" : "invalid" };
    }
  }

  const find = (hash: string): VerifiedJwt | undefined => inForce(verified.get(hash), now());

  return {
    async verify(token) {
      // Runs before the keys are looked up, so that garbage costs only a few microseconds.
      if (!isAcceptable(token, algorithms)) return { kind: "invalid" };
      let set = await keys.get();
      if (set === undefined) return { kind: "no_keys" };
      useKeySet(set);
      const hash = hashOf(token);
      const known = find(hash);
      if (known !== undefined) {
        setBounded(verified, [hash, known], maxVerified);
        return known;
      }
      let result = await check(token, set);
      if (result === "unknown key") {
        const renewed = await keys.renew();
        if (renewed !== undefined && renewed.version !== set.version) {
          set = renewed;
          result = await check(token, set);
        }
      }
      if (result === "unknown key") return { kind: "invalid" };
      // During the check, another request may have fetched a set without the key.
      if (result.kind === "verified" && set.version === version)
        setBounded(verified, [hash, result], maxVerified);
      return result;
    },
    forget: (token) => void verified.delete(hashOf(token)),
    wasVerified: (token) => find(hashOf(token)) !== undefined,
  };
}

function inForce(jwt: VerifiedJwt | undefined, nowMs: number): VerifiedJwt | undefined {
  const endMs = (jwt?.expiresAt.getTime() ?? 0) + clockToleranceSeconds * 1000;
  return endMs > nowMs ? jwt : undefined;
}

function hashOf(token: string): string {
  return createHash("sha256").update(token).digest("base64");
}

function isAcceptable(token: string, algorithms: readonly string[]): boolean {
  try {
    const { alg, typ } = decodeProtectedHeader(token);
    return algorithms.includes(alg ?? "") && types.includes(typ?.toLowerCase());
  } catch {
    return false;
  }
}

function resultOf(payload: JWTPayload): JwtResult {
  const expiresAt = new Date(Math.min((payload.exp ?? 0) * 1000, lastMs));
  return { kind: "verified", claims: claimsOf(payload), scopes: scopesOf(payload), expiresAt };
}

/**
 * Returns the claims without a prototype, so that a claim named `constructor` only comes from the
 * token.
 */
function claimsOf(payload: JWTPayload): Caller["claims"] {
  const claims = Object.create(null) as Record<string, unknown>;
  for (const [name, value] of Object.entries(payload)) if (name !== "__proto__") claims[name] = value;
  return Object.freeze(claims);
}

/**
 * Returns the scopes that have names of this service; `*` without any. RFC 8693 has `scope`, others
 * `scp`.
 */
function scopesOf({ scope, scp }: JWTPayload): readonly string[] {
  const named = [scope, scp].flatMap((one): readonly unknown[] =>
    typeof one === "string" ? one.split(" ") : Array.isArray(one) ? (one as unknown[]) : [],
  );
  const ours = named.filter((one): one is string => typeof one === "string" && isScope(one));
  return ours.length === 0 ? ["*"] : [...new Set(ours)];
}
