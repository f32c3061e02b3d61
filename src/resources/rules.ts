import { rulesAnswer, type RulesKey } from "../mapping/code-module.ts";
import type { Definition } from "../mapping/definition.ts";
import { deriveCreateRules, deriveUpdateRules } from "../mapping/derive-rules.ts";
import type { RuleSpecs } from "../validation/syntax.ts";

/**
 * Returns the rules of a create or an update: those of the code module, otherwise those of the
 * mapping file, otherwise those derived from the fields.
 *
 * @throws Error that names the resource, when the module throws or answers no rules.
 */
export function rulesOf(definition: Definition, key: RulesKey): RuleSpecs {
  const derive = key === "createRules" ? deriveCreateRules : deriveUpdateRules;
  return rulesAnswer(definition, key) ?? definition[key] ?? derive(definition);
}
