import type { Caller } from "../kit/caller.ts";
import type { Definition, Definitions } from "../mapping/definition.ts";
import { alternativesOf } from "../querying/alternatives.ts";
import { conditionOf } from "../querying/prisma-where.ts";
import { isAdminFor, isUnguarded } from "./access.ts";

/**
 * The reason why a resource sends its webhooks to admins only, to follow "so that" or to lead a
 * sentence.
 */
interface Silence {
  readonly kind: "admin" | "unowned" | "claims";
  readonly reason: string;
}

const noEventHas = "access.read asks for a claim of a JWT, which no event has";

/** Returns the reason; undefined when other users may get webhooks too. */
export function silenceOf(definition: Definition, definitions: Definitions): Silence | undefined {
  const { access, ownerColumn, name } = definition;
  const { read } = access;
  if (read.kind === "admin") return { kind: "admin", reason: `Only admins read ${name}` };
  if (read.kind === "owner" && ownerColumn === undefined)
    return { kind: "unowned", reason: `Only admins read ${name}, which has no ownerColumn` };
  if (read.kind !== "filter") return undefined;
  const condition = conditionOf(definition, definitions, read.where);
  if (condition === undefined || alternativesOf(condition).length > 0) return undefined;
  return { kind: "claims", reason: `Only admins get events of ${name}: ${noEventHas}` };
}

/**
 * Returns the reason why a webhook of the user for the resource would never fire; undefined when it
 * may fire. A resource without rules of access accepts the webhooks of every user, as before such
 * rules existed.
 */
export function refusalOfWebhook(
  definition: Definition | undefined,
  definitions: Definitions,
  caller: Caller,
): string | undefined {
  if (definition === undefined || isUnguarded(definition)) return undefined;
  const silence = silenceOf(definition, definitions);
  if (silence === undefined || isAdminFor(definition, caller)) return undefined;
  return `${silence.reason}, so that the webhook would never fire.`;
}

/**
 * Returns a sentence about each resource whose webhooks go to fewer users than the file may intend.
 * `read: admin` is taken as intended.
 */
export function silentWebhooks(definitions: Definitions): readonly string[] {
  return [...definitions.values()].flatMap((definition) => {
    const found = remarkOn(definition, definitions);
    return found === undefined ? [] : [definition.remark(...found)];
  });
}

function remarkOn(
  definition: Definition,
  definitions: Definitions,
): readonly [path: readonly string[], message: string] | undefined {
  const { triggers, access, isAdmin, code } = definition;
  if (triggers.length === 0) return undefined;
  const silence = silenceOf(definition, definitions);
  if (silence !== undefined && isAdmin.kind === "nobody" && code.isAdmin === undefined)
    return [["triggers"], `no user can get webhooks: ${silence.reason}, and isAdmin makes no admins`];
  if (silence?.kind === "unowned")
    return [["triggers"], "only admins get webhooks: the file has no ownerColumn, and access.read is owner"];
  if (silence?.kind === "claims")
    return [["access", "read"], "only admins get webhooks: a claim of a JWT decides, and no event has one"];
  if (access.read.kind === "filter" && asksForClaims(access.read.where))
    return [["access", "read"], "no event has a claim of a JWT: webhooks follow the rest of the filter"];
  return undefined;
}

function asksForClaims(value: unknown): boolean {
  if (typeof value === "string") return value.startsWith("$user.claims.");
  return typeof value === "object" && value !== null && Object.values(value).some(asksForClaims);
}
