import type {
  Access,
  Definition,
  Definitions,
  Field,
  FieldType,
  Relation,
} from "../../src/mapping/definition.ts";

/** Returns a field with every default of the mapping file filled in. */
export function field(name: string, type: FieldType, overrides: Partial<Field> = {}): Field {
  return {
    name,
    type,
    column: name,
    isList: false,
    isOptional: false,
    isKey: false,
    isUnique: false,
    isIndexed: false,
    isUpdatedAt: false,
    ...overrides,
  };
}

/** Returns the usual key: an Int with autoincrement. */
export function keyField(name = "id", overrides: Partial<Field> = {}): Field {
  return field(name, "Int", { isKey: true, default: { kind: "autoincrement" }, ...overrides });
}

/** Access of a mapping file without the key `access`. */
export const ownersOnly: Access = {
  read: { kind: "owner" },
  create: { kind: "everyone" },
  update: { kind: "owner" },
  delete: { kind: "owner" },
  reference: { kind: "everyone" },
};

/**
 * Returns a definition with every default filled in. The key is the field marked as key; without
 * one, a key is added as the first field.
 */
export function definition({
  name,
  fields,
  ...overrides
}: Partial<Definition> & Pick<Definition, "name" | "fields">): Definition {
  const all = fields.some(({ isKey }) => isKey) ? fields : [keyField(), ...fields];
  return {
    file: `resources/${name}.yaml`,
    name,
    model: name.replace(/(?:^|[^a-z0-9])([a-z0-9])/gi, (_, letter: string) => letter.toUpperCase()),
    table: name,
    isManaged: true,
    isView: false,
    fields: all,
    key: all.find(({ isKey }) => isKey) as Field,
    keys: all.filter(({ isKey }) => isKey),
    uniques: [],
    indexes: [],
    relations: [],
    triggers: ["on_create", "on_update", "on_delete"],
    keepsPrevious: false,
    isAdmin: { kind: "flag" },
    searchableColumns: [],
    includes: [],
    access: ownersOnly,
    count: "exact",
    baseQuery: {},
    supportsCreate: true,
    supportsUpdate: true,
    supportsDelete: true,
    code: {},
    remark: (path, message) => [`resources/${name}.yaml`, path.join("."), message].join(": "),
    faultAt: (path, message) => ({
      file: `resources/${name}.yaml`,
      line: 1,
      column: 1,
      key: path.join("."),
      message,
    }),
    ...overrides,
  };
}

/** Returns the definitions by name, with both ends of every reference as relations. */
export function definitionsOf(...list: readonly Definition[]): Definitions {
  const relations = new Map<string, Relation[]>(list.map(({ name }) => [name, []]));
  for (const { name, model, fields } of list) {
    for (const { name: local, references } of fields) {
      if (references === undefined) continue;
      const relationName = `${model}_${references.as}`;
      const { resource, field: foreign, as } = references;
      relations
        .get(name)
        ?.push({ name: as, kind: "one", resource, localField: local, foreignField: foreign, relationName });
      relations.get(resource)?.push({
        name,
        kind: "many",
        resource: name,
        localField: foreign,
        foreignField: local,
        relationName,
      });
    }
  }
  return new Map(list.map((one) => [one.name, { ...one, relations: relations.get(one.name) ?? [] }]));
}
