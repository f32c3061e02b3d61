import type { Definition, Definitions, Field, Relation } from "../mapping/definition.ts";
import { leadsToMany } from "../mapping/shown.ts";

/** A relation with both of its ends resolved. */
export interface Link {
  readonly name: string;
  /** Whether several records may be at the other end. */
  readonly isMany: boolean;
  /**
   * Whether the database guarantees a record at the other end; false for a table that svc did not
   * create.
   */
  readonly isCertain: boolean;
  readonly from: Field;
  readonly target: Definition;
  readonly to: Field;
}

/**
 * Returns the link of a relation. Throws for a relation with a missing end, which `loadDefinitions`
 * has refused before.
 */
export function linkOf(definition: Definition, relation: Relation, definitions: Definitions): Link {
  const target = definitions.get(relation.resource);
  const from = definition.fields.find(({ name }) => name === relation.localField);
  const to = target?.fields.find(({ name }) => name === relation.foreignField);
  if (target === undefined || from === undefined || to === undefined)
    throw new Error(`The relation ${definition.name}.${relation.name} leads nowhere`);
  return {
    name: relation.name,
    isMany: leadsToMany(relation, target),
    isCertain: relation.kind === "one" && definition.isManaged && !from.isOptional,
    from,
    target,
    to,
  };
}
