import { hint } from "../../did-you-mean.ts";
import type { Field, Reference } from "../definition.ts";
import { hasFields, type Draft, type Drafts } from "./draft.ts";

interface End {
  readonly draft: Draft;
  readonly resource: string;
  readonly field: Field;
  readonly reference: Reference;
  readonly target: Draft;
}

/**
 * Resolves every `references`, and gives both resources their end of the relation.
 *
 * The inverse is named after the referencing resource, `-` as `_`; where that name is taken, `<resource>_by_<as>`.
 */
export function linkRelations(all: readonly Draft[], drafts: Drafts): void {
  const isNamed = all.every(({ content }) => content.name !== undefined);
  const ends = all.flatMap((draft) =>
    [...draft.fields.values()].flatMap((field) => {
      const end = field === undefined ? undefined : linkOwn({ draft, field, drafts, isNamed });
      return end === undefined ? [] : [end];
    }),
  );
  // After all of the own ends, so that an inverse never takes the name of one.
  for (const end of ends) if (drafts.get(end.resource) === end.draft) linkInverse(end);

  const faulty = all.filter((draft) => !hasFields(draft) || [...draft.fields.values()].includes(undefined));
  for (const draft of all) {
    draft.mayHaveRelation = (name) =>
      faulty.some((other) => other === draft || name.startsWith(inverseNameOf(other.content.name ?? "")));
  }
}

function inverseNameOf(resource: string): string {
  return resource.replaceAll("-", "_");
}

function linkOwn({
  draft,
  field,
  drafts,
  isNamed,
}: {
  readonly draft: Draft;
  readonly field: Field;
  readonly drafts: Drafts;
  /** Whether every file has a usable name: else an unknown resource may be one without. */
  readonly isNamed: boolean;
}): End | undefined {
  const given = draft.content.fields?.[field.name];
  if (given?.references === undefined) return undefined;
  const resource = draft.content.name ?? "";
  const as = given.as ?? field.name.replace(/_id$/, "");
  const [targetName = "", targetField = ""] = given.references.split(".");
  const path = ["fields", field.name, "references"];

  if (draft.fields.has(as) || draft.relations.has(as)) {
    const message = `the relation would be named "${as}", like another field or relation; expected another name in \`as\``;
    draft.report(given.as === undefined ? path : ["fields", field.name, "as"], message);
    return undefined;
  }
  draft.relations.set(as, undefined);
  const target = drafts.get(targetName);
  if (target === undefined) {
    if (isNamed) draft.report(path, `there is no resource "${targetName}"${hint(targetName, drafts.keys())}`);
    return undefined;
  }
  const other = target.fields.get(targetField);
  if (other === undefined) {
    if (hasFields(target) && !target.fields.has(targetField)) {
      draft.report(
        path,
        `${targetName} has no field "${targetField}"${hint(targetField, target.fields.keys())}`,
      );
    }
    return undefined;
  }
  if (!other.isKey && !other.isUnique) {
    draft.report(path, `expected the key or a unique field; ${given.references} is neither`);
    return undefined;
  }
  if (other.type !== field.type || other.isList) {
    const type = other.isList ? `a list of ${other.type}` : other.type;
    draft.report(
      path,
      `expected the same type at both ends; ${field.name} is ${field.type}, ${given.references} is ${type}`,
    );
    return undefined;
  }
  const reference: Reference = {
    resource: targetName,
    field: targetField,
    as,
    onDelete: given.onDelete ?? "restrict",
  };
  draft.fields.set(field.name, { ...field, references: reference });
  draft.relations.set(as, {
    name: as,
    kind: "one",
    resource: targetName,
    localField: field.name,
    foreignField: targetField,
    relationName: relationNameOf(resource, field),
  });
  return { draft, resource, field, reference, target };
}

/** Neither part has a dot in it, so no two references share a name. */
function relationNameOf(resource: string, field: Field): string {
  return `${resource}.${field.name}`;
}

function linkInverse({ draft, resource, field, reference, target }: End): void {
  const plain = inverseNameOf(resource);
  const names = [plain, `${plain}_by_${reference.as}`];
  const name = names.find((candidate) => !target.fields.has(candidate) && !target.relations.has(candidate));
  if (name === undefined) {
    const message = `${reference.resource} has fields or relations named ${names.join(" and ")} already, where its side of the relation goes; expected another name in \`as\``;
    draft.report(["fields", field.name, "references"], message);
    return;
  }
  target.relations.set(name, {
    name,
    kind: "many",
    resource,
    localField: reference.field,
    foreignField: field.name,
    relationName: relationNameOf(resource, field),
  });
}
