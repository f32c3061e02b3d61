import { rulesAnswer } from "../mapping/code-module.ts";
import type { Definition } from "../mapping/definition.ts";
import { deriveCreateRules, deriveUpdateRules } from "../mapping/derive-rules.ts";
import type { RuleSpecs } from "../validation/syntax.ts";

/**
 * Returns the rules of a create: the code module's, else the mapping file's, else those derived
 * from the fields.
 *
 * @throws Error that names the resource, when the module throws or answers no rules.
 */
export function createRulesOf(definition: Definition): RuleSpecs {
  return rulesAnswer(definition, "createRules") ?? definition.createRules ?? deriveCreateRules(definition);
}

/** Does the same for an update. */
export function updateRulesOf(definition: Definition): RuleSpecs {
  return rulesAnswer(definition, "updateRules") ?? definition.updateRules ?? deriveUpdateRules(definition);
}
