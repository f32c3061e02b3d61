import type { Definition, Field } from "../mapping/definition.ts";
import { isMade } from "../mapping/derive-rules.ts";
import type { RuleSpecs } from "../validation/syntax.ts";
import { createRulesOf, updateRulesOf } from "./rules.ts";

/**
 * Returns a sentence about each field that no rule of create or update reaches. Only validated
 * fields are written, so no request can ever set it. Leaves out fields that the database or the
 * service fills in, and resources without writes.
 */
export function unreachableFields(definition: Definition): readonly string[] {
  const reached = reachedFields(definition);
  if (reached === undefined) return [];
  return definition.fields
    .filter((field) => !reached.has(field.name) && !isFilledIn(field, definition))
    .map(({ name }) =>
      definition.remark(
        ["fields", name],
        "no rule of createRules or updateRules names this field, so that no request can set it",
      ),
    );
}

/**
 * Returns the names of the fields that a request can set. Undefined: no request writes, or a code
 * module does not tell the fields.
 */
export function reachedFields(definition: Definition): ReadonlySet<string> | undefined {
  const { supportsCreate, supportsUpdate } = definition;
  if (!supportsCreate && !supportsUpdate) return undefined;
  try {
    const rules: RuleSpecs[] = [
      ...(supportsCreate ? [createRulesOf(definition)] : []),
      ...(supportsUpdate ? [updateRulesOf(definition)] : []),
    ];
    return new Set(rules.flatMap((specs) => Object.keys(specs)).map((key) => key.split(".")[0] ?? key));
  } catch {
    // A fault of the code module costs a request, not the start.
    return undefined;
  }
}

function isFilledIn(field: Field, { ownerColumn }: Definition): boolean {
  const isFilled = field.isGenerated === true || isMade(field.default) || field.default?.kind === "database";
  return isFilled || field.isUpdatedAt || field.name === ownerColumn;
}
