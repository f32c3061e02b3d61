import { nearest } from "./did-you-mean.ts";

/** Scopes that name no resource; `<resource>:read` and `<resource>:write` join them. */
const plainScopes = ["*", "read", "write", "webhooks", "admin"] as const;

/** The scopes of a token that was made without any. */
export const allScopes: readonly string[] = ["*"];

/** Most scopes of one token. */
export const maxScopes = 100;

const resourceScope = /^([^:\s"\\]{1,200}):(read|write)$/;

/** Returns whether a text has the form of a scope; the resource in it need not exist. */
export function isScope(text: string): boolean {
  return plainScopes.some((scope) => scope === text) || resourceScope.test(text);
}

/** Returns why a text cannot be a scope here, as a sentence; undefined when it can. */
export function scopeFault(text: string, resources: Iterable<string>): string | undefined {
  const [, resource] = resourceScope.exec(text) ?? [];
  if (resource === undefined) {
    const form = "<resource>:read or <resource>:write";
    return isScope(text) ? undefined : `A scope is one of ${plainScopes.join(", ")}, ${form}.`;
  }
  const names = [...resources];
  if (names.includes(resource)) return undefined;
  const meant = nearest(resource, names);
  return `There is no resource ${resource}${meant === undefined ? "." : `; did you mean ${meant}?`}`;
}

/**
 * Returns whether scopes include another one. `*` includes all, `write` includes `read`, and both
 * include those of each resource: the answer to a write is the record.
 */
export function includesScope(held: readonly string[], needed: string): boolean {
  if (held.includes("*") || held.includes(needed)) return true;
  if (needed === "read") return held.includes("write");
  const [, resource, verb] = resourceScope.exec(needed) ?? [];
  if (resource === undefined) return false;
  if (held.includes("write")) return true;
  return verb === "read" && (held.includes("read") || held.includes(`${resource}:write`));
}

/** Returns the first of the scopes that are asked for and not held; undefined when all are. */
export function missingScope(held: readonly string[], asked: readonly string[]): string | undefined {
  return asked.find((scope) => !includesScope(held, scope));
}

/** What the credential of a request allows. */
export interface Grant {
  readonly scopes: readonly string[];
  /** When the credential ends; undefined: never. */
  readonly expiresAt: Date | undefined;
  /** Whether its user has the admin flag, whatever the scopes. */
  readonly isOfAdmin: boolean;
}
