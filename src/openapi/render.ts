import { exampleOf } from "./examples.ts";
import { faultResponses, faultsOf } from "./faults.ts";
import type { JsonSchema } from "./json-schema.ts";
import type { Operation, OperationAnswer, Parameter } from "./operation.ts";
import { rateLimitHeaders, sharedHeaders } from "./shared-parameters.ts";

/** Context of the rendering: the components, and the settings that answers depend on. */
interface Rendering {
  readonly schemas: Readonly<Record<string, JsonSchema>>;
  readonly takesJwts: boolean;
  /** Whether answers have the headers of `http.rateLimit`. */
  readonly hasRateLimit: boolean;
}

/** Name of the security scheme. */
export const scheme = "token";

/** Returns the operations as the `paths` of a document, and the responses that they share. */
export function renderPaths(
  operations: readonly Operation[],
  rendering: Rendering,
): { readonly paths: JsonSchema; readonly responses: JsonSchema } {
  const paths: Record<string, Record<string, JsonSchema>> = {};
  const shared: Record<string, JsonSchema> = {};
  for (const operation of operations) {
    const { method, path } = operation;
    const { takesJwts } = rendering;
    const faults = faultResponses(faultsOf(operation, { takesJwts, takesKey: takesKey(operation) }));
    for (const { name, response } of faults) shared[name] = response;
    const responses = {
      ...answersOf(operation, rendering),
      ...Object.fromEntries(
        faults.map(({ status, name }) => [status, { $ref: `#/components/responses/${name}` }]),
      ),
    };
    (paths[path] ??= {})[method] = { ...headOf(operation, rendering), responses };
  }
  return { paths, responses: shared };
}

function takesKey({ parameters = [] }: Operation): boolean {
  return parameters.includes(sharedHeaders.IdempotencyKey);
}

function headOf(operation: Operation, rendering: Rendering): JsonSchema {
  const { id, tag, summary, description, scope, parameters = [], body } = operation;
  return {
    operationId: id,
    tags: [tag],
    summary,
    ...(description !== undefined && description !== "" && { description }),
    security: scope === "none" ? [] : [{ [scheme]: scope === "any" ? [] : [scope] }],
    ...(parameters.length > 0 && { parameters: parameters.map(parameterOf) }),
    ...(body !== undefined && { requestBody: bodyOf(body, rendering) }),
  };
}

function parameterOf(parameter: Parameter): JsonSchema | Parameter {
  const [name] = Object.entries(sharedHeaders).find(([, one]) => one === parameter) ?? [];
  return name === undefined ? parameter : { $ref: `#/components/parameters/${name}` };
}

function bodyOf(body: NonNullable<Operation["body"]>, { schemas }: Rendering): JsonSchema {
  const { schema, isOptional } = body;
  const whole = resolved(schema, schemas);
  const example = body.example ?? exampleOf(whole, "text");
  const isNeeded = isOptional !== true && Array.isArray(whole["required"]);
  return {
    ...(isNeeded && { required: true }),
    content: { "application/json": { schema, ...(example !== undefined && { example }) } },
  };
}

/** Replaces references by their schemas; a body never refers to itself. */
function resolved(schema: JsonSchema, schemas: Rendering["schemas"]): JsonSchema {
  const { $ref } = schema;
  if (typeof $ref === "string")
    return resolved(schemas[$ref.slice($ref.lastIndexOf("/") + 1)] ?? {}, schemas);
  const visit = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(visit);
    return typeof value === "object" && value !== null ? resolved(value as JsonSchema, schemas) : value;
  };
  return Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, visit(value)]));
}

function answersOf(operation: Operation, { hasRateLimit }: Rendering): JsonSchema {
  const { answers, scope } = operation;
  const replayed = takesKey(operation) ? ["Idempotent-Replayed"] : [];
  const limits = hasRateLimit && scope !== "none" ? Object.keys(rateLimitHeaders) : [];
  const more = [...replayed, ...limits];
  return Object.fromEntries(
    Object.entries(answers).map(([status, answer]) => [status, answerOf(answer, more)]),
  );
}

function answerOf(
  { description, schema, mediaType = "application/json", headers = [] }: OperationAnswer,
  more: readonly string[],
): JsonSchema {
  const names = ["X-Request-Id", ...headers, ...more];
  return {
    description,
    headers: Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }])),
    ...(schema !== undefined && { content: { [mediaType]: { schema } } }),
  };
}
