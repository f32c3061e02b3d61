import { validationError } from "../kit/errors.ts";
import type { Definition, Definitions, Field, Row } from "../mapping/definition.ts";
import { messageFor } from "../validation/messages.ts";
import type { CompiledRules, Lookup } from "../validation/validate.ts";

/**
 * Checks the references in a body by `access.reference` of their target resources. The rule
 * `exists` already checks them, so this checks the fields without that rule.
 *
 * @throws AppError `validation.failed`, the same for a missing record and for one that may not be
 *   referenced.
 */
export async function checkReferences({
  definition,
  definitions,
  rules,
  data,
  lookup,
}: {
  readonly definition: Definition;
  readonly definitions: Definitions;
  readonly rules: CompiledRules;
  readonly data: Row;
  readonly lookup: Lookup;
}): Promise<void> {
  const open = definition.fields.filter(
    (field) =>
      isGuarded(field, definitions) &&
      data[field.name] !== undefined &&
      data[field.name] !== null &&
      !isLookedUp(field, rules),
  );
  if (open.length === 0) return;
  const found = await Promise.all(
    open.map(async ({ name, references }) =>
      lookup.exists({
        target: references?.resource ?? "",
        column: references?.field ?? "",
        value: data[name],
        isReference: true,
      }),
    ),
  );
  const wrong = open.filter((_, index) => found[index] === false);
  if (wrong.length === 0) return;
  const errors = wrong.map(({ name }) => [
    name,
    [messageFor({ rule: "exists", field: name, sizeKind: "string" })],
  ]);
  throw validationError(Object.fromEntries(errors));
}

function isGuarded({ references }: Field, definitions: Definitions): boolean {
  if (references === undefined) return false;
  return definitions.get(references.resource)?.access.reference.kind !== "everyone";
}

function isLookedUp({ name, references }: Field, { fields }: CompiledRules): boolean {
  const lookups = fields
    .filter(({ key }) => key.length === 1 && key[0] === name)
    .flatMap((one) => one.lookups);
  return lookups.some(
    (one) => one.name === "exists" && one.target === references?.resource && one.column === references.field,
  );
}
