import type { ErrorCode } from "../../kit/errors.ts";
import type { RulesKey } from "../../mapping/code-module.ts";
import type { Definition, Definitions } from "../../mapping/definition.ts";
import { includedBy } from "../../mapping/shown.ts";
import { listShapeOf } from "../../querying/shown-paths.ts";
import { maxOperations } from "../../resources/batch-body.ts";
import { rulesOf } from "../../resources/rules.ts";
import { bodySchema } from "../body-schemas.ts";
import { listSchema } from "../envelopes.ts";
import { exampleOf } from "../examples.ts";
import { withHints } from "../hints.ts";
import { closed, listOf, objectOf, schemaNamed, type JsonSchema } from "../json-schema.ts";
import { listParameters, listRemarks } from "../list-parameters.ts";
import {
  pathParameter,
  sectionOf,
  type Operation,
  type OperationAnswer,
  type Parameter,
  type SectionOperation,
} from "../operation.ts";
import { listedName } from "../record-schemas.ts";
import { idempotencyKey, readConditions, writeConditions } from "../shared-parameters.ts";
import { idSchema } from "../value-schemas.ts";

/** A resource and the context of its operations. */
interface Resource {
  readonly definition: Definition;
  readonly path: string;
  readonly id: Parameter;
  readonly record: OperationAnswer;
}

const missing: readonly ErrorCode[] = ["record.not_found"];
const others: readonly ErrorCode[] = ["record.forbidden"];

/** Returns the schemas of the bodies of a resource, by their names in the components. */
export function bodySchemas(
  definition: Definition,
  definitions: Definitions,
): Readonly<Record<string, JsonSchema>> {
  const { name, supportsCreate, supportsUpdate } = definition;
  const bodyOf = (key: RulesKey): JsonSchema => withHints(schemaOf(definition, key), definition, definitions);
  return {
    ...(supportsCreate && { [`${name}.create`]: bodyOf("createRules") }),
    ...(supportsUpdate && { [`${name}.update`]: bodyOf("updateRules") }),
  };
}

/**
 * Returns the schema of a body. A fault in the rules of a code module affects its requests, but not
 * the description of the others.
 */
function schemaOf(definition: Definition, key: RulesKey): JsonSchema {
  // The key of a record never changes.
  const fields = definition.fields.filter(({ isKey }) => key === "createRules" || !isKey);
  try {
    return bodySchema(rulesOf(definition, key), fields);
  } catch {
    return bodySchema({}, fields);
  }
}

/** The operations of a resource: docs/api.md, "Lists" and "Single records and writes". */
export function resourceOperations(
  definition: Definition,
  definitions: Definitions,
  maxPerPage: number,
): readonly Operation[] {
  const { name, supportsCreate, supportsUpdate, supportsDelete } = definition;
  const schema = idSchema(definition);
  const resource: Resource = {
    definition,
    path: `/resources/${name}`,
    id: pathParameter("id", schema, exampleOf(schema, "id")),
    record: { description: "The record.", schema: schemaNamed(name), headers: ["ETag"] },
  };
  return sectionOf({ tag: name, scope: `${name}:write` }, [
    listOperation(resource, definitions, maxPerPage),
    ...(supportsCreate ? [createOperation(resource)] : []),
    showOperation(resource),
    ...(supportsUpdate ? [updateOperation(resource, "put"), updateOperation(resource, "patch")] : []),
    ...(supportsDelete ? [deleteOperation(resource)] : []),
    ...(supportsCreate || supportsUpdate || supportsDelete ? [batchOperation(resource)] : []),
  ]);
}

function listOperation(
  { definition, path }: Resource,
  definitions: Definitions,
  maxPerPage: number,
): SectionOperation {
  const { name, count, code, searchableColumns } = definition;
  const all = listShapeOf(definition, definitions, includedBy(definition));
  // Otherwise a search is accepted, and finds every record.
  const shape = { ...all, hasSearch: searchableColumns.length > 0 || code.applySearch !== undefined };
  return {
    method: "get",
    path,
    id: `${name}.list`,
    summary: `Lists the ${name} that the caller may read`,
    description: listRemarks(shape),
    scope: `${name}:read`,
    parameters: listParameters(shape, { maxPerPage, count }),
    answers: { 200: { description: "A page.", schema: listSchema(schemaNamed(listedName(definition))) } },
  };
}

function createOperation({ definition: { name }, path, record }: Resource): SectionOperation {
  return {
    method: "post",
    path,
    id: `${name}.create`,
    summary: `Creates one of ${name}`,
    parameters: idempotencyKey,
    body: { schema: schemaNamed(`${name}.create`) },
    answers: { 201: { ...record, headers: ["ETag", "Location"] } },
    errors: others,
  };
}

function showOperation({ definition: { name }, path, id, record }: Resource): SectionOperation {
  return {
    method: "get",
    path: `${path}/{id}`,
    id: `${name}.show`,
    summary: `Shows one of ${name}`,
    scope: `${name}:read`,
    parameters: [id, ...readConditions],
    answers: { 200: record, 304: { description: "If-None-Match names the record.", headers: ["ETag"] } },
    errors: [...missing, ...others],
  };
}

function updateOperation(
  { definition: { name }, path, id, record }: Resource,
  method: "put" | "patch",
): SectionOperation {
  return {
    method,
    path: `${path}/{id}`,
    id: `${name}.${method === "put" ? "update" : "patch"}`,
    summary: `Changes the fields of one of ${name} that are sent`,
    parameters: [id, ...writeConditions],
    body: { schema: schemaNamed(`${name}.update`) },
    answers: { 200: record },
    errors: ["record.too_large", ...missing, ...others],
  };
}

function deleteOperation({ definition: { name }, path, id }: Resource): SectionOperation {
  return {
    method: "delete",
    path: `${path}/{id}`,
    id: `${name}.delete`,
    summary: `Deletes one of ${name}`,
    parameters: [id, ...writeConditions],
    answers: { 204: { description: "It is gone." } },
    errors: [...missing, ...others, "record.referenced"],
  };
}

function batchOperation({ definition, path }: Resource): SectionOperation {
  const { name } = definition;
  return {
    method: "post",
    path: `${path}/batch`,
    id: `${name}.batch`,
    summary: `Makes up to ${maxOperations} writes to ${name}, all or none`,
    parameters: idempotencyKey,
    body: { schema: batchSchema(definition) },
    answers: { 200: { description: "One result for each.", schema: batchAnswer(name) } },
    errors: [...missing, ...others, "record.referenced", "record.changed"],
  };
}

function operationOf(method: string, keys: Readonly<Record<string, JsonSchema>>): JsonSchema {
  return closed(objectOf({ method: { type: "string", const: method }, ...keys }, { optional: ["if_match"] }));
}

function batchSchema(definition: Definition): JsonSchema {
  const { name, supportsCreate, supportsUpdate, supportsDelete } = definition;
  const written = idSchema(definition);
  const id = written["type"] === "string" ? written : { anyOf: [written, { type: "string" }] };
  const tags = { if_match: { type: "string", description: "As the header If-Match.", examples: ["*"] } };
  const operations = [
    ...(supportsUpdate ? [operationOf("update", { id, data: schemaNamed(`${name}.update`), ...tags })] : []),
    ...(supportsDelete ? [operationOf("delete", { id, ...tags })] : []),
    ...(supportsCreate ? [operationOf("create", { data: schemaNamed(`${name}.create`) })] : []),
  ];
  const list = listOf({ anyOf: operations }, { minItems: 1, maxItems: maxOperations });
  return closed(objectOf({ operations: list }));
}

function batchAnswer(name: string): JsonSchema {
  const written = objectOf({ status: { type: "integer", enum: [200, 201] }, record: schemaNamed(name) });
  const deleted = objectOf({ status: { type: "integer", const: 204 } });
  return objectOf({ data: listOf({ anyOf: [written, deleted] }) });
}
