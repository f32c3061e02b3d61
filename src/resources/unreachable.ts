import type { Definition, Field } from "../mapping/definition.ts";
import { isMade } from "../mapping/derive-rules.ts";
import { rulesOf } from "./rules.ts";

/**
 * Returns a sentence about each field that no rule of create or update reaches. Only validated
 * fields are written, so no request can ever set it. Also returns one about each field that a
 * create needs and its rules do not reach. Leaves out fields that the database or the service fills
 * in, and resources without writes.
 */
export function unreachableFields(definition: Definition): readonly string[] {
  const reached = reachedFields(definition);
  const created = reachedFields(definition, ["create"]);
  const remarkOf = (field: Field): string | undefined => {
    if (reached?.has(field.name) === false)
      return "no rule of createRules or updateRules names this field, so that no request can set it";
    if (created?.has(field.name) === false && isNeeded(field, definition))
      return "no rule of createRules names this field, which is neither optional nor has a default, so that every create is refused";
    return undefined;
  };
  return definition.fields
    .filter((field) => !isFilledIn(field, definition))
    .flatMap((field) => {
      const remark = remarkOf(field);
      return remark === undefined ? [] : [definition.remark(["fields", field.name], remark)];
    });
}

/**
 * Returns the names of the fields that a request for one of the operations can set. Undefined: no
 * such request writes, or the fields of a code module are unknown.
 */
export function reachedFields(
  definition: Definition,
  operations: readonly ("create" | "update")[] = ["create", "update"],
): ReadonlySet<string> | undefined {
  const written = operations.filter((operation) => definition[supported[operation]]);
  if (written.length === 0) return undefined;
  try {
    const keys = written.flatMap((operation) => Object.keys(rulesOf(definition, `${operation}Rules`)));
    return new Set(keys.map((key) => key.split(".")[0] ?? key));
  } catch {
    // A fault of the code module fails a request, not the start.
    return undefined;
  }
}

const supported = { create: "supportsCreate", update: "supportsUpdate" } as const;

/** A list without a value is empty. An existing table may have defaults that no file shows. */
function isNeeded({ isOptional, isList, default: given }: Field, { isManaged }: Definition): boolean {
  return isManaged && !isOptional && !isList && given === undefined;
}

function isFilledIn(field: Field, { ownerColumn }: Definition): boolean {
  const isFilled = field.isGenerated === true || isMade(field.default) || field.default?.kind === "database";
  return isFilled || field.isUpdatedAt || field.name === ownerColumn;
}
