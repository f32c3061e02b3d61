import type { Definition, Definitions } from "../mapping/definition.ts";
import { shownPlaces, type Shown } from "../mapping/shown.ts";
import type { JsonSchema } from "./json-schema.ts";

/** A path of a record's JSON, and the place that it leads to. */
type Place = readonly [path: string, shown: Shown];

/**
 * Returns where a record's JSON has the values of its key, in the order of `{id}`. Undefined where
 * it does not show all of them. With a `transform` in code, the names of the fields.
 */
export function keyPaths(definition: Definition, definitions: Definitions): readonly string[] | undefined {
  const places = [...placesOf(definition, definitions)];
  const paths = definition.fields
    .filter(({ isKey }) => isKey)
    .map(({ name }) => places.find(([, { steps, field }]) => steps.length === 0 && field?.name === name));
  return paths.every((place) => place !== undefined) ? paths.map(([path]) => path) : undefined;
}

/**
 * Adds to each property of a body what a form needs, and no rule says: `x-resource`, whose records
 * it points at, and `x-shown`, the path of its value in the record's JSON.
 */
export function withHints(body: JsonSchema, definition: Definition, definitions: Definitions): JsonSchema {
  const places = [...placesOf(definition, definitions)];
  const properties = Object.entries(body["properties"] as Readonly<Record<string, JsonSchema>>);
  return {
    ...body,
    properties: Object.fromEntries(
      properties.map(([name, schema]) => [
        name,
        { ...schema, ...hintsOf(name, definition, { definitions, places }) },
      ]),
    ),
  };
}

function hintsOf(
  name: string,
  { relations }: Definition,
  { definitions, places }: { readonly definitions: Definitions; readonly places: readonly Place[] },
): JsonSchema {
  const relation = relations.find(
    ({ kind, localField, resource, foreignField }) =>
      kind === "one" && localField === name && isLoneKey(definitions.get(resource), foreignField),
  );
  const own = places.find(([, { steps, field }]) => steps.length === 0 && field?.name === name);
  const there =
    relation &&
    places.find(
      ([, { steps, field }]) =>
        steps.length === 1 && steps[0]?.relation === relation && field?.name === relation.foreignField,
    );
  const path = (own ?? there)?.[0];
  return {
    ...(relation !== undefined && { "x-resource": relation.resource }),
    ...(path !== undefined && path !== name && { "x-shown": path }),
  };
}

/** Returns whether a field alone is the key: other references name no `{id}`. */
function isLoneKey(definition: Definition | undefined, name: string): boolean {
  const keys = definition?.fields.filter((field) => field.isKey) ?? [];
  return keys.length === 1 && keys[0]?.name === name;
}

function placesOf(definition: Definition, definitions: Definitions): ReadonlyMap<string, Shown> {
  const included = definition.code.baseQuery === undefined ? definition.baseQuery.include : "any";
  return shownPlaces(definition, definitions, included);
}
