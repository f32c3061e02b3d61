import { hint, questionOf } from "../../kit/did-you-mean.ts";
import { lookupColumnOf } from "../../validation/compile.ts";
import type { RuleSpec, RuleSpecs } from "../../validation/syntax.ts";
import { parseRules, ruleFaults } from "../../validation/syntax.ts";
import { shortTable } from "../../db/names.ts";
import { findField, hasFields, type Draft, type Drafts } from "./draft.ts";

/**
 * Checks both sets of rules: their syntax, their fields, and the targets of `unique` and `exists`.
 */
export function checkRules(draft: Draft, drafts: Drafts): void {
  for (const key of ["createRules", "updateRules"] as const) {
    const specs = draft.content[key] ?? {};
    checkSpecs({ draft, drafts, key, specs });
    for (const name of Object.keys(specs)) {
      const [root = name] = name.split(".");
      findField({ draft, name: root, path: [key, name], place: "key" });
    }
  }
}

/** Checks the syntax of a set of rules, and the targets of its look-ups. */
export function checkSpecs({
  draft,
  drafts,
  key,
  specs,
}: {
  readonly draft: Draft;
  readonly drafts: Drafts;
  readonly key: "createRules" | "updateRules";
  readonly specs: RuleSpecs;
}): void {
  const faults = ruleFaults(specs);
  for (const { field, message } of faults) draft.report([key, field], message);
  for (const [name, spec] of Object.entries(specs)) {
    const path = [key, name];
    if (!faults.some(({ field }) => field === name)) checkLookups({ draft, drafts, path, name, spec });
  }
}

/**
 * Checks the targets. A target that is not a resource is a table of the database, which is unknown
 * here. It is a fault only when it looks like a mistyped resource.
 */
function checkLookups({
  draft,
  drafts,
  path,
  name,
  spec,
}: {
  readonly draft: Draft;
  readonly drafts: Drafts;
  readonly path: readonly string[];
  readonly name: string;
  readonly spec: RuleSpec;
}): void {
  const tables = new Set(
    [...drafts.values()].map(({ content }) => content.table && shortTable(content.table)),
  );
  for (const rule of parseRules(spec)) {
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
