import type { Definition, Definitions } from "../mapping/definition.ts";
import { includedBy, shownPlaces, type Shown } from "../mapping/shown.ts";
import type { JsonSchema } from "./json-schema.ts";

/** A path of a record's JSON, and its place. */
type Place = readonly [path: string, shown: Shown];

/**
 * Returns the paths of the key's values in a record's JSON, in the order of `{id}`. Undefined when
 * the JSON does not show all of them. With a `transform` in code, returns the names of the fields.
 */
export function keyPaths(definition: Definition, definitions: Definitions): readonly string[] | undefined {
  const places = [...placesOf(definition, definitions)];
  const paths = definition.keys.map(({ name }) => ownPath(places, name));
  return paths.every((path) => path !== undefined) ? paths : undefined;
}

/** Returns the path of a field of the record itself. */
function ownPath(places: readonly Place[], name: string): string | undefined {
  return places.find(([, { steps, field }]) => steps.length === 0 && field?.name === name)?.[0];
}

/**
 * Adds to each property of a body the hints that a form needs and no rule has. `x-resource` is the
 * resource of the records that it references. `x-shown` is the path of its value in the record's
 * JSON.
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
  const there =
    relation &&
    places.find(
      ([, { steps, field }]) =>
        steps.length === 1 && steps[0]?.relation === relation && field?.name === relation.foreignField,
    );
  const path = ownPath(places, name) ?? there?.[0];
  return {
    ...(relation !== undefined && { "x-resource": relation.resource }),
    ...(path !== undefined && path !== name && { "x-shown": path }),
  };
}

/** Returns whether a field alone is the key. References to other fields contain no `{id}`. */
function isLoneKey(definition: Definition | undefined, name: string): boolean {
  return definition?.keys.length === 1 && definition.key.name === name;
}

function placesOf(definition: Definition, definitions: Definitions): ReadonlyMap<string, Shown> {
  return shownPlaces(definition, definitions, includedBy(definition));
}
