import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import type { Answer } from "../support/service.ts";

type Json = Readonly<Record<string, unknown>>;

export interface DocumentedOperation {
  readonly operationId: string;
  readonly parameters?: readonly (Json & { readonly name?: string; readonly in?: string })[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly example?: unknown }>> };
  readonly responses: Readonly<Record<string, Json>>;
}

export interface ServedDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, DocumentedOperation>>>>;
  readonly components: Json;
  readonly webhooks: Readonly<Record<string, { readonly post: Json }>>;
}

/**
 * Judges answers by a document. Keys that a schema does not name are faults, too: the document
 * would be incomplete.
 *
 * @returns The faults of an answer; empty without any.
 */
export function createJudge(document: ServedDocument): {
  readonly faultsOf: (operation: DocumentedOperation, answer: Answer) => readonly string[];
  readonly faultsOfRequest: (name: string, body: unknown) => readonly string[];
} {
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  (addFormats as unknown as (to: Ajv2020) => void)(ajv);
  ajv.addFormat("decimal", /^-?\d+(\.\d+)?$/);
  ajv.addSchema(closed(document) as Json, "document");
  const known = new Map<string, ValidateFunction>();

  function faultsAt(pointer: string, body: unknown): readonly string[] {
    let validate = known.get(pointer);
    if (validate === undefined) known.set(pointer, (validate = ajv.compile({ $ref: `document#${pointer}` })));
    if (validate(body)) return [];
    return (validate.errors ?? []).map(
      ({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`,
    );
  }

  return {
    faultsOf(operation, { status, headers, body }) {
      const response = operation.responses[String(status)];
      if (response === undefined) return [`${status} is not documented: ${JSON.stringify(body)}`];
      const { pointer, value } = at(document, response, operation, status);
      const needed = Object.entries((value["headers"] ?? {}) as Readonly<Record<string, Json>>).filter(
        ([, header]) => resolve(document, header)["required"] === true,
      );
      const missing = needed
        .filter(([name]) => !headers.has(name))
        .map(([name]) => `the header ${name} is missing`);
      const content = value["content"] as Json | undefined;
      if (content === undefined)
        return body === undefined ? missing : [...missing, "a body where there is none"];
      return [...missing, ...faultsAt(`${pointer}/content/application~1json/schema`, body)];
    },
    faultsOfRequest: (name, body) =>
      faultsAt(`/webhooks/${name}/post/requestBody/content/application~1json/schema`, body),
  };
}

function at(
  document: ServedDocument,
  response: Json,
  { operationId }: DocumentedOperation,
  status: number,
): { readonly pointer: string; readonly value: Json } {
  const { $ref } = response;
  if (typeof $ref === "string") return { pointer: $ref.slice(1), value: resolve(document, response) };
  for (const [path, methods] of Object.entries(document.paths))
    for (const [method, one] of Object.entries(methods))
      if (one.operationId === operationId) {
        const escaped = encodeURIComponent(path.replaceAll("~", "~0").replaceAll("/", "~1"));
        return { pointer: `/paths/${escaped}/${method}/responses/${status}`, value: response };
      }
  throw new Error(`${operationId} is not in the document`);
}

/** Follows a reference within the document. */
export function resolve(document: ServedDocument, value: Json): Json {
  const { $ref } = value;
  if (typeof $ref !== "string") return value;
  return $ref
    .slice(2)
    .split("/")
    .reduce((here: unknown, key) => (here as Json)[key], document) as Json;
}

/** Forbids keys that no schema names, unless the schema sets that itself. */
function closed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(closed);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([key, item]) => [
    key,
    key === "allOf" || key === "Fault" ? item : closed(item),
  ]);
  const copy = Object.fromEntries(entries) as Record<string, unknown>;
  const isObject = [copy["type"]].flat().includes("object") && typeof copy["properties"] === "object";
  return isObject && !("additionalProperties" in copy) && !("openapi" in (copy["properties"] as object))
    ? { ...copy, additionalProperties: false }
    : copy;
}
