import type { JsonSchema } from "./json-schema.ts";

const texts: Readonly<Record<string, string>> = {
  "date-time": "2026-03-28T14:30:00Z",
  date: "2026-03-28",
  time: "14:30:00",
  duration: "PT1H",
  uuid: "5f0c4f0e-6c0e-4b7e-9a53-3f6f3d1c7a10",
  email: "ada@example.com",
  uri: "https://example.com/",
  ipv4: "192.0.2.1",
  ipv6: "2001:db8::1",
};

/**
 * Returns an example that fits a schema; undefined where none is known, as for a pattern.
 *
 * @param name Name of the key, which is the example of a plain text.
 */
export function exampleOf(schema: JsonSchema, name: string): unknown {
  const { type, enum: values, anyOf, const: only, examples } = schema;
  if (Array.isArray(examples)) return (examples as unknown[])[0];
  if ("const" in schema) return only;
  if (Array.isArray(values)) return (values as unknown[])[0];
  if (Array.isArray(anyOf))
    return (anyOf as JsonSchema[]).map((one) => exampleOf(one, name)).find((value) => value !== undefined);
  const [kind] = [type].flat();
  if (kind === "integer" || kind === "number") return numberIn(schema, kind === "integer");
  if (kind === "string") return textIn(schema, name);
  if (kind === "boolean") return true;
  if (kind === "array") return itemsIn(schema, name);
  if (kind === "object") return objectIn(schema);
  return kind === undefined && schema["$ref"] === undefined ? {} : undefined;
}

function numberIn(schema: JsonSchema, isWhole: boolean): number {
  const { minimum, maximum, exclusiveMinimum: above, exclusiveMaximum: below } = schema;
  const least = typeof minimum === "number" ? minimum : typeof above === "number" ? above + 1 : 1;
  const most = typeof maximum === "number" ? maximum : typeof below === "number" ? below - 1 : least + 1;
  const value = Math.min(Math.max(1, least), most);
  return isWhole ? Math.ceil(value) : value;
}

function textIn(
  { format, pattern, minLength = 0, maxLength = 255, contentEncoding, contentMediaType }: JsonSchema,
  name: string,
): string | undefined {
  const least = Number(minLength);
  const fitting = (text: string): string | undefined => {
    const long = text.padEnd(least, "x").slice(0, Number(maxLength));
    return typeof pattern !== "string" || new RegExp(pattern, "u").test(long) ? long : undefined;
  };
  if (contentEncoding === "base64") return "aGVsbG8=";
  if (contentMediaType === "application/json") return "{}";
  const known = typeof format === "string" ? texts[format] : undefined;
  if (known !== undefined) return known.length <= Number(maxLength) ? known : undefined;
  return fitting(name) ?? fitting("1") ?? fitting("A1") ?? fitting("a");
}

function itemsIn({ items = {}, minItems = 0 }: JsonSchema, name: string): unknown {
  const item = exampleOf(items as JsonSchema, name);
  if (item === undefined) return Number(minItems) === 0 ? [] : undefined;
  return Array.from({ length: Math.max(1, Number(minItems)) }, () => item);
}

/** Returns an example of an object; undefined when a required key has no example. */
function objectIn({ properties = {}, required = [] }: JsonSchema): unknown {
  const entries = Object.entries(properties as Readonly<Record<string, JsonSchema>>)
    .filter(([, { readOnly }]) => readOnly !== true)
    .map(([name, schema]) => [name, exampleOf(schema, name)] as const);
  const missing = entries.filter(
    ([name, value]) => value === undefined && (required as string[]).includes(name),
  );
  return missing.length > 0
    ? undefined
    : Object.fromEntries(entries.filter(([, value]) => value !== undefined));
}
