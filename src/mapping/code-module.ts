import type { Kind } from "../config/kinds.ts";
import { isObject } from "../kit/is-object.ts";
import type { RuleSpecs } from "../validation/syntax.ts";
import type { CodeModule, Definition } from "./definition.ts";

/**
 * Runs an export of a resource's code module.
 *
 * @param call Calls the export. Its error becomes the cause of an error that names the resource and
 *   the export. A promise counts as an error, because no export may be async: its rejection would
 *   end the process.
 */
export function callCode<T>(definition: Pick<Definition, "name">, name: keyof CodeModule, call: () => T): T {
  try {
    const result = call();
    if (!(result instanceof Promise)) return result;
    result.catch(() => undefined);
    throw new Error("it returned a promise, which cannot be awaited here");
  } catch (error) {
    throw new Error(`${name} of the resource ${definition.name} failed`, { cause: error });
  }
}

/**
 * Calls a code module for a number of attempts or their waits.
 *
 * @returns Undefined without that export, and when it returns undefined.
 * @throws Error that names the resource, when the export throws or returns a value that the setting
 *   may not have.
 */
export function scheduleAnswer<T>(
  definition: Pick<Definition, "name" | "code">,
  name: "webhookMaxAttempts" | "webhookBackoff",
  kind: Kind<T>,
): T | undefined {
  const given = callCode(definition, name, () => definition.code[name]?.());
  if (given === undefined) return undefined;
  const value = kind.read(given);
  if (value === undefined)
    throw new Error(`${name} of the resource ${definition.name} must answer ${kind.expected}`);
  return value;
}

export type RulesKey = "createRules" | "updateRules";

/**
 * Calls a code module for the rules of a create or an update.
 *
 * @returns Undefined without that export.
 * @throws Error that names the resource, when the export throws or returns no rules. Rules derived
 *   from the fields would let requests set every field after a forgotten `return`.
 */
export function rulesAnswer(
  definition: Pick<Definition, "name" | "code">,
  name: RulesKey,
): RuleSpecs | undefined {
  const call = definition.code[name];
  if (call === undefined) return undefined;
  const rules = callCode(definition, name, call);
  if (isObject(rules)) return rules;
  throw new Error(`${name} of the resource ${definition.name} must answer rules by field`);
}
