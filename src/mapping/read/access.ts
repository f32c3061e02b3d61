import { operations, type Access, type AccessRule, type PrismaArgs } from "../definition.ts";
import { checkAccessFilter } from "./base-query.ts";
import type { Draft, Drafts } from "./draft.ts";

/** Reads `access`, fills in its defaults, and checks every name in its filters. */
export function readAccess(draft: Draft, drafts: Drafts): Access {
  const { access, ownerColumn } = draft.content;
  for (const operation of operations) {
    const rule = access?.[operation];
    if (typeof rule === "object") checkAccessFilter(draft, drafts, ["access", operation], rule);
  }
  const read = ruleOf(access?.read ?? "owner");
  // In files without `access` and without an owner, everyone may refer to records that only admins
  // read. This was so before `access` existed.
  const isGuarded = access !== undefined || ownerColumn !== undefined;
  const reference = access?.reference ?? (isGuarded ? "read" : "everyone");
  return {
    read,
    create: ruleOf(access?.create ?? "everyone"),
    update: ruleOf(access?.update ?? "owner"),
    delete: ruleOf(access?.delete ?? "owner"),
    reference: reference === "read" ? read : ruleOf(reference),
  };
}

function ruleOf(given: string | PrismaArgs): AccessRule {
  return typeof given === "string" ? { kind: given as "owner" } : { kind: "filter", where: given };
}
