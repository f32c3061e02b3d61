import { useQuery, type UseQueryResult } from "@tanstack/react-query";
import { isStatus } from "../../api/api-error.ts";
import { api } from "../../api/client.ts";
import { shownOf } from "./filters.ts";
import { formFields, type FormField } from "./form-fields.ts";
import type { Schema } from "./schema.ts";

interface Parameter {
  readonly name: string;
  readonly schema: Schema;
}

interface Document {
  readonly tags: readonly { readonly name: string; readonly "x-key"?: readonly string[] }[];
  readonly paths: Readonly<
    Record<string, Readonly<Record<string, { readonly parameters?: readonly Parameter[] }>>>
  >;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

export interface FilterShape {
  readonly path: string;
  readonly operators: readonly string[];
  /** Values of an enum or a boolean; empty for other types. */
  readonly choices: readonly string[];
  readonly isNumeric: boolean;
  /** Format of one value, such as `date-time`; undefined without one. */
  readonly format: string | undefined;
}

/** The abilities and the fields of a resource, from the OpenAPI document. */
export interface ResourceShape {
  readonly name: string;
  /** Paths of the key in a record, in the order of `{id}`; null when a record does not show it. */
  readonly keys: readonly string[] | null;
  /** Paths of values in a record; empty when a code module makes the records. */
  readonly paths: readonly string[];
  readonly sortable: ReadonlySet<string>;
  readonly filters: readonly FilterShape[];
  readonly isSearchable: boolean;
  readonly create: readonly FormField[] | null;
  readonly update: readonly FormField[] | null;
  readonly canDelete: boolean;
}

/**
 * Reads the shapes of the resources. Null when the document is switched off: records are then shown
 * and changed as JSON.
 */
export function useShapes(): UseQueryResult<ReadonlyMap<string, ResourceShape> | null> {
  return useQuery({
    queryKey: ["openapi"],
    staleTime: 60_000,
    queryFn: async () => {
      try {
        return shapesOf(await api<Document>("/openapi.json"));
      } catch (error) {
        if (isStatus(error, 404)) return null;
        throw error;
      }
    },
  });
}

/** Returns a shape that assumes nothing but a key named `id`. */
export function unknownShape(name: string): ResourceShape {
  return {
    name,
    keys: ["id"],
    paths: [],
    sortable: new Set(),
    filters: [],
    isSearchable: false,
    create: [],
    update: [],
    canDelete: true,
  };
}

function shapesOf(document: Document): ReadonlyMap<string, ResourceShape> {
  const names = document.tags
    .map(({ name }) => name)
    .filter((name) => `/resources/${name}` in document.paths);
  return new Map(names.map((name) => [name, shapeOf(name, document)]));
}

function shapeOf(name: string, { tags, paths, components: { schemas } }: Document): ResourceShape {
  const list = paths[`/resources/${name}`] ?? {};
  const single = paths[`/resources/${name}/{id}`] ?? {};
  const parameters = list["get"]?.parameters ?? [];
  const of = (wanted: string): Schema | undefined => parameters.find((one) => one.name === wanted)?.schema;
  const bodyOf = (kind: string): readonly FormField[] => {
    const schema = schemas[`${name}.${kind}`];
    return schema === undefined ? [] : formFields(schema);
  };
  return {
    name,
    keys: tags.find((tag) => tag.name === name)?.["x-key"] ?? null,
    paths: leaves(texts(of("fields"))),
    sortable: new Set(texts(of("sort"))),
    isSearchable: of("search") !== undefined,
    filters: parameters.flatMap(({ name: parameter, schema }) => {
      const path = /^filter\[(.+)\]$/.exec(parameter)?.[1];
      return path === undefined ? [] : [filterOf(path, schema)];
    }),
    create: "post" in list ? bodyOf("create") : null,
    update: "patch" in single ? bodyOf("update") : null,
    canDelete: "delete" in single,
  };
}

function texts(schema: Schema | undefined): readonly string[] {
  return (schema?.items?.enum ?? []).map(String);
}

/** Leaves out paths of whole objects: `customer` beside `customer.name`. */
function leaves(paths: readonly string[]): readonly string[] {
  return paths.filter((path) => !paths.some((other) => other.startsWith(`${path}.`)));
}

function filterOf(path: string, { properties = {} }: Schema): FilterShape {
  const one = properties["ne"] ?? properties["eq"];
  const isBoolean = one?.type === "boolean";
  return {
    path,
    isNumeric: one?.type === "integer" || one?.type === "number",
    format: one?.format,
    operators: Object.keys(properties),
    // The document has the values in the form of a query string.
    choices: isBoolean ? ["true", "false"] : (one?.enum ?? []).map((value) => shownOf(String(value))),
  };
}
