import { createHash } from "node:crypto";
import type { JwtSettings } from "../config/settings.ts";
import { AppError } from "../kit/errors.ts";
import type { Caller } from "../kit/caller.ts";
import { toPath, valueAt } from "../validation/body-paths.ts";
import type { Identifier } from "./authenticate.ts";
import { callerOf, disabledUser, expiredToken, invalidToken, type Identity } from "./identity.ts";
import { emailFault, subjectFault } from "./input.ts";
import type { JwtVerifier, VerifiedJwt } from "./jwt.ts";
import type { User, UserStore } from "./store.ts";

const longestName = 255;

const refusals: Readonly<Record<"unknown" | "email_taken", Identity>> = {
  unknown: { kind: "refused", code: "user.unknown", reason: "There is no user for this token" },
  email_taken: {
    kind: "refused",
    code: "user.email_taken",
    reason: "Another user has the e-mail address of this token",
  },
};

/**
 * Creates the identifier of JWTs. It finds the user of a JWT by issuer and subject, and creates the
 * user at the first request. A known user takes one statement. It never finds a user by e-mail
 * address: anyone who chooses the address at the issuer would take over the account.
 */
export function createJwtIdentifier(
  settings: JwtSettings,
  verifier: JwtVerifier,
  users: Pick<UserStore, "findBySubject" | "provision">,
): Identifier {
  const { issuer, userClaim, provision } = settings;

  async function findUser(subject: string, claims: Caller["claims"]): Promise<User | Identity> {
    const found = await users.findBySubject({ issuer, subject });
    if (found !== undefined) return found;
    if (!provision) return refusals.unknown;
    const made = await users.provision({ issuer, subject, ...profileOf(subject, claims, settings) });
    return made.kind === "email_taken" ? refusals.email_taken : made.user;
  }

  return {
    async identify(token) {
      const result = await verifier.verify(token);
      if (result.kind === "no_keys")
        throw new AppError("issuer.unavailable", "Server Error", { headers: { "Retry-After": "5" } });
      if (result.kind === "expired") return expiredToken;
      const subject = result.kind === "verified" ? subjectOf(result, userClaim) : undefined;
      if (result.kind !== "verified" || subject === undefined) return invalidToken;
      const { claims, scopes, expiresAt } = result;
      const found = await findUser(subject, claims);
      const user = "disabledAt" in found && found.disabledAt !== null ? disabledUser : found;
      if ("kind" in user) {
        // Known tokens pass the limit of failures, and each of their requests costs a statement.
        verifier.forget(token);
        return user;
      }
      const { id, name, email } = user;
      // The admin claim is not stored: it ends with the token.
      const isAdmin = user.isAdmin || isAdminBy(claims, settings);
      const grant = { scopes, expiresAt, isOfAdmin: isAdmin };
      return {
        kind: "known",
        caller: callerOf({ id, name, email, isAdmin, claims }, grant),
        tokenId: undefined,
        grant,
      };
    },
    wasFound: (token) => verifier.wasVerified(token),
  };
}

/** Returns a claim by its name, else by its path, such as `realm_access.roles` of Keycloak. */
function claimOf(claims: Caller["claims"], name: string): unknown {
  return Object.hasOwn(claims, name) ? claims[name] : valueAt(claims, toPath(name));
}

/** Returns the subject; undefined for a value that cannot be a subject or cannot be stored. */
function subjectOf({ claims }: VerifiedJwt, userClaim: string): string | undefined {
  const value = claimOf(claims, userClaim);
  return typeof value === "string" && subjectFault(value) === undefined ? value : undefined;
}

function isAdminBy(claims: Caller["claims"], { adminClaim, adminValue }: JwtSettings): boolean {
  if (adminClaim === undefined || adminValue === undefined) return false;
  const value = claimOf(claims, adminClaim);
  // The claim may be the JSON value true where the setting is the text.
  return (Array.isArray(value) ? (value as unknown[]) : [value]).some(
    (one) => one === adminValue || (one === true && adminValue === "true"),
  );
}

function profileOf(
  subject: string,
  claims: Caller["claims"],
  { issuer, nameClaim, emailClaim }: JwtSettings,
): { readonly name: string; readonly email: string } {
  const given = claimOf(claims, nameClaim);
  const text = typeof given === "string" ? given.slice(0, longestName) : "";
  // The cut may leave half of a surrogate pair.
  const name = text.replace(/[\p{Cc}\p{Surrogate}]/gu, " ").trim();
  const email = claimOf(claims, emailClaim);
  // Mapping files can make admins by address, so an unverified address does not count.
  const isVerified = emailClaim !== "email" || claims["email_verified"] === true;
  const isFit = typeof email === "string" && isVerified && emailFault(email) === undefined;
  const digest = createHash("sha256").update(`${issuer}\n${subject}`).digest("hex").slice(0, 32);
  return {
    name: name === "" ? subject : name,
    // RFC 2606: no real address is under .invalid.
    email: isFit ? email : `${digest}@users.invalid`,
  };
}
