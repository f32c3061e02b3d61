import { hint, questionOf } from "../../kit/did-you-mean.ts";
import { lookupColumnOf } from "../../validation/compile.ts";
import type { RuleSpec, RuleSpecs } from "../../validation/syntax.ts";
import { parseRules, ruleFaults } from "../../validation/syntax.ts";
import { shortTable } from "../../db/names.ts";
import { findField, hasFields, type Draft, type DraftPart, type Drafts } from "./draft.ts";

/**
 * Checks both sets of rules: their syntax, their fields, and the targets of `unique` and `exists`.
 */
export function checkRules(draft: Draft, drafts: Drafts): void {
  for (const key of ["createRules", "updateRules"] as const) {
    const specs = draft.content[key] ?? {};
    checkSpecs({ draft, drafts, path: [key], given: specs });
    for (const name of Object.keys(specs)) {
      const [root = name] = name.split(".");
      findField(draft, root, [key, name], "key");
    }
  }
}

/** Checks the syntax of a set of rules, and the targets of its look-ups. */
export function checkSpecs({ draft, drafts, path, given: specs }: DraftPart<RuleSpecs>): void {
  const faults = ruleFaults(specs);
  for (const { field, message } of faults) draft.report([...path, field], message);
  for (const [name, given] of Object.entries(specs)) {
    if (faults.some(({ field }) => field === name)) continue;
    checkLookups(name, { draft, drafts, path: [...path, name], given });
  }
}

/**
 * Checks the targets. A target that is not a resource is a table of the database, which is unknown
 * here. It is a fault only when it looks like a mistyped resource.
 */
function checkLookups(name: string, { draft, drafts, path, given }: DraftPart<RuleSpec>): void {
  const tables = new Set(
    [...drafts.values()].map(({ content }) => content.table && shortTable(content.table)),
  );
  for (const rule of parseRules(given)) {
    if (rule.name !== "unique" && rule.name !== "exists") continue;
    const [resource = "", column = lookupColumnOf(name)] = rule.args;
    const target = drafts.get(resource);
    if (target === undefined) {
      const question = tables.has(shortTable(resource)) ? "" : questionOf(resource, drafts.keys());
      if (question !== "") draft.report(path, `${rule.name}: there is no resource "${resource}"${question}`);
    } else if (hasFields(target) && !target.fields.has(column)) {
      draft.report(
        path,
        `${rule.name}: ${resource} has no field "${column}"${hint(column, target.fields.keys())}`,
      );
    }
  }
}
