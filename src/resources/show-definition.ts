import type { Definition, Definitions, Field, TransformNode } from "../mapping/definition.ts";
import { listShapeOf } from "../querying/shown-paths.ts";
import { rulesOf } from "./rules.ts";

/**
 * Returns a definition in the form of a mapping file, with every default and derived rule.
 * Decisions of a code module are shown as `module`.
 */
export function shownDefinition(
  definition: Definition,
  definitions: Definitions,
): Readonly<Record<string, unknown>> {
  const { code, isAdmin, access, fields, transform, baseQuery } = definition;
  const shape = listShapeOf(definition, definitions);
  return present({
    name: definition.name,
    model: definition.model,
    table: definition.table,
    managed: definition.isManaged,
    view: definition.isView,
    fields: Object.fromEntries(fields.map((field) => [field.name, shownField(field)])),
    unique: definition.uniques,
    indexes: definition.indexes,
    triggers: definition.triggers,
    previous: definition.keepsPrevious,
    transform:
      code.transform !== undefined
        ? "module"
        : transform === undefined
          ? Object.fromEntries(fields.map(({ name }) => [name, name]))
          : shownNode(transform),
    ...(definition.isView ? {} : shownRules(definition)),
    ownerColumn: definition.ownerColumn,
    isAdmin:
      code.isAdmin !== undefined ? "module" : isAdmin.kind === "emails" ? isAdmin.emails : isAdmin.kind,
    access: Object.fromEntries(
      Object.entries(access).map(([name, rule]) => [name, rule.kind === "filter" ? rule.where : rule.kind]),
    ),
    searchableColumns: definition.searchableColumns,
    filterable: [...shape.filterable.paths.keys()],
    sortable: [...shape.sortable.paths.keys()].filter((path) => !shape.sortable.faults.has(path)),
    includes: definition.includes,
    count: definition.count,
    baseQuery: code.baseQuery === undefined ? baseQuery : "module",
    supportsCreate: definition.supportsCreate,
    supportsUpdate: definition.supportsUpdate,
    supportsDelete: definition.supportsDelete,
    webhookMaxAttempts: definition.webhookMaxAttempts,
    webhookBackoff: definition.webhookBackoff,
  });
}

function shownRules(definition: Definition): Readonly<Record<string, unknown>> {
  const { code } = definition;
  return {
    createRules: code.createRules === undefined ? rulesOf(definition, "createRules") : "module",
    updateRules: code.updateRules === undefined ? rulesOf(definition, "updateRules") : "module",
  };
}

/** Returns the keys of a field that differ from their defaults, and the column. */
function shownField(field: Field): Readonly<Record<string, unknown>> {
  const { references, default: given, values } = field;
  return present({
    type: field.type === "Instant" ? "DateTime" : field.type,
    id: field.isKey || undefined,
    column: field.column,
    list: field.isList || undefined,
    optional: field.isOptional || undefined,
    unique: field.isUnique || undefined,
    index: field.isIndexed || undefined,
    updatedAt: field.isUpdatedAt || undefined,
    generated: field.isGenerated,
    native: field.native,
    length: field.length,
    precision: field.precision,
    scale: field.scale,
    values,
    default: given?.kind === "literal" ? given.value : given?.kind,
    references: references && `${references.resource}.${references.field}`,
    as: references?.as,
    onDelete: references?.onDelete,
  });
}

function shownNode(node: TransformNode): unknown {
  if (node.kind === "path") return node.path.join(".");
  if (node.kind === "value") return { value: node.value };
  return Object.fromEntries(node.entries.map(([name, child]) => [name, shownNode(child)]));
}

function present(entries: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(entries).filter(([, value]) => value !== undefined));
}
