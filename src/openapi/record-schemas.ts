import type { Definition, Definitions, Relation, TransformNode } from "../mapping/definition.ts";
import { includedBy, leadsToMany, type Included } from "../mapping/shown.ts";
import { listOf, nullable, objectOf, schemaNamed, type JsonSchema } from "./json-schema.ts";
import { shownSchema } from "./value-schemas.ts";

/** Returns the name of the schema of a record in a list. */
export function listedName({ name }: Definition): string {
  return `${name}.listed`;
}

/**
 * Returns the schemas of a resource's JSON: of a whole record, and of a record in a list. In a
 * list, `fields` may leave out keys, and `include` adds relations.
 */
export function recordSchemas(
  definition: Definition,
  definitions: Definitions,
): Readonly<Record<string, JsonSchema>> {
  const of = (isPart: boolean): JsonSchema => schemaOfRecord({ definition, definitions, isPart });
  return {
    [definition.name]: of(false),
    [listedName(definition)]: withIncludes(definition, definitions, of(true)),
  };
}

interface SchemaContext {
  /** Resource of the record, or of the related record at the end of a path. */
  readonly definition: Definition;
  readonly definitions: Definitions;
  /** Whether keys may be left out. */
  readonly isPart: boolean;
}

function schemaOfRecord(showing: SchemaContext): JsonSchema {
  const { definition } = showing;
  if (definition.code.transform !== undefined)
    return { description: "What the code module of the mapping file makes of the record." };
  if (definition.transform === undefined) return schemaOfFields(showing, { isLoose: false });
  return schemaOfNode(definition.transform, showing, includedBy(definition));
}

function schemaOfNode(node: TransformNode, showing: SchemaContext, included: Included): JsonSchema {
  if (node.kind === "value") return constant(node.value);
  if (node.kind === "path") return schemaOfPath(node.path, showing, { included, isLoose: false });
  const properties = node.entries.map(
    ([key, child]) => [key, schemaOfNode(child, showing, included)] as const,
  );
  return objectOf(Object.fromEntries(properties), { optional: showing.isPart ? "all" : [] });
}

function constant(value: unknown): JsonSchema {
  return typeof value === "string" ? { type: "string", const: value } : { const: value };
}

interface Inclusion {
  readonly included: Included;
  /** Whether `include` may leave out fields of the related record, which are then null. */
  readonly isLoose: boolean;
}

function schemaOfPath(
  [name = "", ...rest]: readonly string[],
  showing: SchemaContext,
  reach: Inclusion,
): JsonSchema {
  const { definition, definitions } = showing;
  const field = definition.fields.find((one) => one.name === name);
  if (field !== undefined && rest.length === 0) {
    const schema = shownSchema(field, definition);
    return reach.isLoose ? nullable(schema) : schema;
  }
  const relation = definition.relations.find((one) => one.name === name);
  const target = relation && definitions.get(relation.resource);
  if (relation === undefined || target === undefined) return {};
  const there = { ...showing, definition: target };
  const beyond = inclusionBelow(reach, name);
  const one = rest.length === 0 ? schemaOfFields(there, beyond) : schemaOfPath(rest, there, beyond);
  return related(relation, target, one);
}

/**
 * Returns the schema of a relation. It allows null, for a missing related record or a relation that
 * `include` leaves out.
 */
function related(relation: Relation, target: Definition, one: JsonSchema): JsonSchema {
  return nullable(leadsToMany(relation, target) ? listOf(one) : one);
}

function inclusionBelow({ included, isLoose }: Inclusion, name: string): Inclusion {
  if (included === "any") return { included, isLoose: true };
  const args = included?.[name];
  if (typeof args !== "object" || args === null) return { included: undefined, isLoose };
  const { include, select, omit } = args as Readonly<Record<string, unknown>>;
  const isNarrowed = select !== undefined || omit !== undefined;
  return { included: isNarrowed ? "any" : (include as Included), isLoose: isLoose || isNarrowed };
}

function schemaOfFields(
  { definition, isPart }: SchemaContext,
  { isLoose }: Pick<Inclusion, "isLoose">,
): JsonSchema {
  const properties = definition.fields.map((field) => {
    const schema = shownSchema(field, definition);
    return [field.name, isLoose ? nullable(schema) : schema] as const;
  });
  return objectOf(Object.fromEntries(properties), { optional: isPart ? "all" : [] });
}

/** Adds the relations of `include`; a relation replaces a key of the same name. */
function withIncludes(definition: Definition, definitions: Definitions, schema: JsonSchema): JsonSchema {
  const added = definition.includes.flatMap((name) => {
    const relation = definition.relations.find((one) => one.name === name);
    const target = relation && definitions.get(relation.resource);
    if (relation === undefined || target === undefined) return [];
    const record = schemaNamed(target.name);
    const isMany = leadsToMany(relation, target);
    const whole = isMany ? listOf(record, { maxItems: 100 }) : nullable(record);
    const own = (schema["properties"] as Readonly<Record<string, JsonSchema>> | undefined)?.[name];
    return [[name, own === undefined ? whole : { anyOf: [own, whole] }] as const];
  });
  if (added.length === 0 || schema["type"] !== "object") return schema;
  const properties = schema["properties"] as Readonly<Record<string, JsonSchema>>;
  return { ...schema, properties: { ...properties, ...Object.fromEntries(added) } };
}
