import { questionOf } from "./did-you-mean.ts";

/** Scopes without a resource. The others are `<resource>:read` and `<resource>:write`. */
const plainScopes = ["*", "read", "write", "webhooks", "admin"] as const;

/** The scopes of a token that was created without any. */
export const allScopes: readonly string[] = ["*"];

/** Limit of the scopes of one token. */
export const maxScopes = 100;

const resourceScope = /^([^:\s"\\]{1,200}):(read|write)$/;

/** Returns whether a text has the form of a scope; the resource in it need not exist. */
export function isScope(text: string): boolean {
  return plainScopes.some((scope) => scope === text) || resourceScope.test(text);
}

/** Returns the reason, as a sentence, why a text cannot be a scope here; undefined when it can. */
export function scopeFault(text: string, resources: Iterable<string>): string | undefined {
  const [, resource] = resourceScope.exec(text) ?? [];
  if (resource === undefined) {
    const form = "<resource>:read or <resource>:write";
    return isScope(text) ? undefined : `A scope is one of ${plainScopes.join(", ")}, ${form}.`;
  }
  const names = [...resources];
  if (names.includes(resource)) return undefined;
  return `There is no resource ${resource}${questionOf(resource, names, "") || "."}`;
}

/**
 * Returns whether scopes include another one. `*` includes all scopes. `write` includes `read`, and
 * both include those of each resource, because the answer to a write is the record.
 */
export function includesScope(held: readonly string[], needed: string): boolean {
  if (held.includes("*") || held.includes(needed)) return true;
  if (needed === "read") return held.includes("write");
  const [, resource, verb] = resourceScope.exec(needed) ?? [];
  if (resource === undefined) return false;
  if (held.includes("write")) return true;
  return verb === "read" && (held.includes("read") || held.includes(`${resource}:write`));
}

/** Returns the first requested scope that is not held; undefined when all are held. */
export function missingScope(held: readonly string[], asked: readonly string[]): string | undefined {
  return asked.find((scope) => !includesScope(held, scope));
}

/** Permissions of the credential of a request. */
export interface Grant {
  readonly scopes: readonly string[];
  /** End of the credential. Undefined: it never ends. */
  readonly expiresAt: Date | undefined;
  /** Whether the user has the admin flag, with any scopes. */
  readonly isOfAdmin: boolean;
}
