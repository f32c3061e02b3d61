/** A JSON Schema of draft 2020-12, which OpenAPI 3.1 uses unchanged. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** Returns a schema of objects without further keys. */
export function closed(schema: JsonSchema): JsonSchema {
  return { ...schema, additionalProperties: false };
}

export const emptyObject: JsonSchema = closed({ type: "object", properties: {} });

/** Returns a reference to a schema of the document's components. */
export function schemaNamed(name: string): JsonSchema {
  return { $ref: `#/components/schemas/${name}` };
}

/** Returns a schema that also allows null. */
export function nullable(schema: JsonSchema): JsonSchema {
  const { type, enum: values } = schema;
  if (Object.keys(schema).every((key) => key === "description")) return schema;
  if (Array.isArray(values))
    return values.includes(null)
      ? schema
      : { ...schema, ...nullType(type), enum: [...(values as unknown[]), null] };
  if (typeof type === "string" || Array.isArray(type)) return { ...schema, ...nullType(type) };
  return { anyOf: [schema, { type: "null" }] };
}

function nullType(type: unknown): JsonSchema {
  if (type === undefined) return {};
  const types = [type].flat();
  return { type: types.includes("null") ? types : [...types, "null"] };
}

/** Returns the schema of an object that requires all keys but the optional ones. */
export function objectOf(
  properties: Readonly<Record<string, JsonSchema>>,
  { optional = [] }: { readonly optional?: readonly string[] | "all" } = {},
): JsonSchema {
  const required = optional === "all" ? [] : Object.keys(properties).filter((key) => !optional.includes(key));
  return { type: "object", ...(required.length > 0 && { required }), properties };
}

/** Returns the schema of a list; `limits` are keywords of the list itself, such as `minItems`. */
export function listOf(items: JsonSchema, limits: JsonSchema = {}): JsonSchema {
  return { type: "array", items, ...limits };
}
