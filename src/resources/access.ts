import type { Caller } from "../kit/caller.ts";
import { callCode } from "../mapping/code-module.ts";
import type { Definition, Field, Row } from "../mapping/definition.ts";

/** A Prisma filter. */
export type Where = Readonly<Record<string, unknown>>;

/**
 * Whether the caller sees and changes every record of the resource (specification 5.4).
 * Throws when the code module's `isAdmin` does, or when it answers anything but true or false: a promise would pass for true.
 */
export function isAdminFor(definition: Definition, caller: Caller): boolean {
  if (caller.isLimited === true) return false;
  const decide = definition.code.isAdmin;
  if (decide !== undefined) {
    const answer: unknown = callCode({ definition, name: "isAdmin", call: () => decide(caller) });
    if (typeof answer === "boolean") return answer;
    throw new Error(`isAdmin of the resource ${definition.name} must answer true or false`);
  }
  const rule = definition.isAdmin;
  if (rule.kind === "emails")
    return rule.emails.some((email) => email.toLowerCase() === caller.email.toLowerCase());
  return rule.kind === "flag" && caller.isAdmin;
}

/** The records that the caller may see: all (undefined), those that the filter gives, or none. */
export function ownerFilter(definition: Definition, caller: Caller): Where | undefined | "nothing" {
  if (isAdminFor(definition, caller)) return undefined;
  const owner = ownerFieldOf(definition);
  return owner === undefined ? "nothing" : { [owner.name]: ownerValue(owner, caller) };
}

/** Whether the caller may see, change and delete the record. */
export function mayTouch(definition: Definition, caller: Caller, row: Row): boolean {
  if (isAdminFor(definition, caller)) return true;
  const owner = ownerFieldOf(definition);
  return owner !== undefined && row[owner.name] === ownerValue(owner, caller);
}

/** Undefined: the resource has no owners. */
export function ownerFieldOf(definition: Definition): Field | undefined {
  return definition.fields.find(({ name }) => name === definition.ownerColumn);
}

/** The caller's id as the owner column, an Int, BigInt or String, holds it. */
export function ownerValue(owner: Field, caller: Caller): number | bigint | string {
  if (owner.type === "BigInt") return BigInt(caller.id);
  return owner.type === "String" ? String(caller.id) : caller.id;
}
