import { hint } from "../../kit/did-you-mean.ts";
import type { Field, Reference } from "../definition.ts";
import { isUniqueAlone } from "../keys.ts";
import { isUnsupported } from "../models.ts";
import { hasFields, keysOf, type Draft, type Drafts } from "./draft.ts";
import { isObject } from "../../kit/is-object.ts";

interface RelationEnd {
  readonly kind: "end";
  readonly draft: Draft;
  readonly resource: string;
  readonly field: Field;
  readonly reference: Reference;
  readonly target: Draft;
}

/**
 * A reference with a fault that is reported already. Uses of its relations are not reported again.
 */
interface BrokenReference {
  readonly kind: "broken";
  readonly draft: Draft;
  readonly as: string;
  /** Undefined: the target may be any draft. */
  readonly target: Draft | undefined;
}

/** All files with their references. */
interface Links {
  readonly all: readonly Draft[];
  readonly ends: readonly RelationEnd[];
  readonly broken: readonly BrokenReference[];
}

/**
 * Resolves every `references`, and gives both resources their end of the relation.
 *
 * The inverse has the name of the referencing resource, with `-` as `_`; `<resource>_by_<as>` where
 * that name is taken.
 */
export function linkRelations(all: readonly Draft[], drafts: Drafts): void {
  const isNamed = all.every(({ content }) => content.name !== undefined);
  const linked = all.flatMap((draft) =>
    [...draft.fields.values()].flatMap((field) =>
      field === undefined ? [] : (linkOwn(draft, field, drafts, isNamed) ?? []),
    ),
  );
  const ends = linked.filter((one) => one.kind === "end");
  // Runs after all own ends, so that an inverse never takes the name of an own end.
  for (const end of ends) if (drafts.get(end.resource) === end.draft) linkInverse(end);

  // Guesses come last, so that they never take a known name.
  const broken = [
    ...linked.filter((one) => one.kind === "broken"),
    ...all.flatMap((draft) => faultyReferences(draft, drafts)),
  ];
  const links: Links = { all, ends, broken };
  for (const one of broken) keepNames(one, links);
  for (const draft of all) draft.mayHaveRelation = (name) => isInverse(name, draft, links);
}

/** Reserves the relation names of a broken reference at both ends, without a target. */
function keepNames(reference: BrokenReference, { all, ends }: Links): void {
  const { draft, as } = reference;
  keepName(draft, as);
  if (draft.content.name === undefined) return;
  const plain = inverseNameOf(draft.content.name);
  const targets = reference.target === undefined ? all : [reference.target];
  for (const target of targets) {
    keepName(target, plain);
    // This reference decides which of several references to a resource gets the plain name.
    const siblings = ends.filter((end) => end.draft === draft && end.target === target);
    for (const name of [as, ...siblings.map((end) => end.reference.as)])
      keepName(target, `${plain}_by_${name}`);
  }
}

function keepName({ fields, relations }: Draft, name: string): void {
  if (!fields.has(name) && !relations.has(name)) relations.set(name, undefined);
}

/**
 * Returns whether another file, whose name or fields are unknown, may give the draft a relation of
 * that name.
 */
function isInverse(name: string, draft: Draft, { all, ends, broken }: Links): boolean {
  return all.some((other) => {
    const resource = other.content.name;
    if (resource === undefined) {
      const isReferring = [...ends, ...broken].some(
        (one) => one.draft === other && (one.target ?? draft) === draft,
      );
      return isReferring || !hasFields(other);
    }
    const plain = inverseNameOf(resource);
    return !hasFields(other) && (name === plain || name.startsWith(`${plain}_by_`));
  });
}

/** Returns the references of the faulty fields of a file, as far as they are known. */
function faultyReferences(draft: Draft, drafts: Drafts): readonly BrokenReference[] {
  const { value } = draft.source;
  const given = isObject(value) && isObject(value["fields"]) ? value["fields"] : {};
  return [...draft.fields].flatMap(([name, field]) => {
    if (field !== undefined) return [];
    const { as, references } = isObject(given[name]) ? given[name] : {};
    const [targetName = ""] = typeof references === "string" ? references.split(".") : [];
    const relation = typeof as === "string" ? as : defaultNameOf(name);
    return relation === name ? [] : [{ kind: "broken", draft, as: relation, target: drafts.get(targetName) }];
  });
}

function inverseNameOf(resource: string): string {
  return resource.replaceAll("-", "_");
}

function defaultNameOf(field: string): string {
  return field.replace(/_id$/, "");
}

/**
 * Links a field's own reference.
 *
 * @param isNamed Whether every file has a valid name. Otherwise, an unknown resource may be a file
 *   without one.
 * @returns Undefined when the field references nothing.
 */
function linkOwn(
  draft: Draft,
  field: Field,
  drafts: Drafts,
  isNamed: boolean,
): RelationEnd | BrokenReference | undefined {
  const given = draft.content.fields?.[field.name];
  if (given?.references === undefined) return undefined;
  const resource = draft.content.name ?? "";
  const as = given.as ?? defaultNameOf(field.name);
  const [targetName = "", targetField = ""] = given.references.split(".");
  const path = ["fields", field.name, "references"];

  const isTaken = draft.fields.has(as) || draft.relations.has(as);
  if (given.as === undefined && as === field.name) {
    draft.report(path, "the relation needs a name other than the field's; expected it in `as`");
  } else if (isTaken) {
    const message = `the relation would be named "${as}", like another field or relation; expected another name in \`as\``;
    draft.report(given.as === undefined ? path : ["fields", field.name, "as"], message);
  } else draft.relations.set(as, undefined);

  const target = drafts.get(targetName);
  const broken: BrokenReference = {
    kind: "broken",
    draft,
    as: isTaken ? defaultNameOf(field.name) : as,
    target,
  };
  const refuse = (message: string): BrokenReference => {
    draft.report(path, message);
    return broken;
  };
  if (target === undefined)
    return isNamed
      ? refuse(`there is no resource "${targetName}"${hint(targetName, drafts.keys())}`)
      : broken;
  const other = target.fields.get(targetField);
  if (other === undefined)
    return hasFields(target) && !target.fields.has(targetField)
      ? refuse(`${targetName} has no field "${targetField}"${hint(targetField, target.fields.keys())}`)
      : broken;
  if (!isUniqueAlone(other, { keys: keysOf(target) }))
    return refuse(`expected the key or a unique field; ${given.references} is neither`);
  if (draft.content.managed !== false && target.content.view === true)
    return refuse(`${targetName} is a view, to which no foreign key leads; expected the table beneath it`);
  const fault = typeFaultOf({ draft, field }, { draft: target, field: other });
  if (fault !== undefined) return refuse(fault);
  if (isTaken) return broken;
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
  return { kind: "end", draft, resource, field, reference, target };
}

interface TypedEnd {
  readonly draft: Draft;
  readonly field: Field;
}

/** Returns a fault in the types of a referencing field and the referenced one. */
function typeFaultOf(from: TypedEnd, to: TypedEnd): string | undefined {
  if (to.field.type !== from.field.type || to.field.isList) {
    const type = to.field.isList ? `a list of ${to.field.type}` : to.field.type;
    const name = `${to.draft.content.name}.${to.field.name}`;
    return `expected the same type at both ends; ${from.field.name} is ${from.field.type}, ${name} is ${type}`;
  }
  const foreign = [from, to].find(
    ({ draft, field }) => draft.content.managed !== false && isUnsupported(field),
  )?.field;
  return foreign === undefined
    ? undefined
    : `a managed table has no reference of the type ${foreign.native ?? foreign.type}, which ${foreign.name} has`;
}

/** Returns a name that is unique to a reference, since neither part contains a dot. */
function relationNameOf(resource: string, field: Field): string {
  return `${resource}.${field.name}`;
}

function linkInverse({ draft, resource, field, reference, target }: RelationEnd): void {
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
