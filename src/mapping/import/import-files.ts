import type { Comments } from "../../config/edit-yaml.ts";
import { shortTable } from "../../db/names.ts";
import { groupBy } from "../../kit/group-by.ts";
import { triggers, type Trigger } from "../definition.ts";
import type { FileField } from "../read/draft.ts";
import { ownerTypes } from "../read/fields.ts";
import { typeOptionsOf } from "../type-options.ts";
import type { Catalog, CatalogRelation } from "./catalog.ts";
import { chooseTables } from "./choose-tables.ts";
import type { ImportedColumn } from "./column.ts";
import { tableComments } from "./comments.ts";
import type { ChosenTable, FileContent, ImportedFile, ImportOptions, LeftOut } from "./imported-table.ts";
import { isSecret } from "./secret-names.ts";
import { findReferences, type TableReferences } from "./references.ts";
import { importedRules, type FieldOfColumn } from "./rules.ts";
import type { TypedField } from "./column-type.ts";

/** The result of an import from a database. */
export interface Imported {
  readonly files: readonly ImportedFile[];
  readonly leftOut: readonly LeftOut[];
  /** Number of partitions, whose rows their tables serve. */
  readonly partitions: number;
}

/** Creates mapping files for a database's tables and views. Pure. */
export function importFiles(catalog: Catalog, options: ImportOptions): Imported {
  const { tables, leftOut, partitions } = chooseTables(catalog, options);
  const unique = new Set(
    catalog.indexes
      .filter(({ columns }) => columns.length === 1)
      .map(({ relation, columns }) => `${relation} ${columns[0]}`),
  );
  const isUnique = (relation: number, column: number): boolean => unique.has(`${relation} ${column}`);
  const { of, typeOf } = findReferences({
    tables,
    constraints: catalog.constraints,
    isUnique,
    refused: options.refused,
  });
  const indexes = groupBy(catalog.indexes, ({ relation }) => relation);
  return {
    files: tables.map((table) =>
      fileOf({
        table,
        references: of(table),
        typeOf: (one) => typeOf(table, one),
        isUnique: (column) => isUnique(table.relation.oid, column),
        uniqueColumns: (indexes.get(table.relation.oid) ?? [])
          .filter((index) => !index.isPrimary && index.columns.length > 1)
          .map((index) => index.columns),
        ownerColumn: options.ownerColumn,
        refused: options.refused,
      }),
    ),
    leftOut: [
      ...leftOut,
      ...tables.flatMap(({ table, columns }) =>
        columns.leftOut.map(({ column, reason }) => ({ table, column: column.name, reason })),
      ),
    ],
    partitions,
  };
}

interface FileParts {
  readonly table: ChosenTable;
  readonly references: TableReferences;
  readonly typeOf: (one: ImportedColumn) => TypedField;
  readonly isUnique: (column: number) => boolean;
  /** Columns of each unique index over several columns. */
  readonly uniqueColumns: readonly (readonly number[])[];
  readonly ownerColumn: string | undefined;
  readonly refused: ReadonlyMap<string, string>;
}

function fileOf(parts: FileParts): ImportedFile {
  const { table, references, uniqueColumns } = parts;
  const { relation, columns, key, resource, model, file } = table;
  const fields = columns.columns.map((imported): FieldOfColumn => fieldOf(imported, parts));
  const { owner, ownerRemarks } = ownerOf(fields, parts.ownerColumn);
  const isView = relation.kind === "view" || relation.kind === "materialized view";
  const isReadOnly = isView || relation.kind === "foreign table";
  const isSoleKey = key.columns.length === 1;
  const ownTriggers: readonly Trigger[] = isReadOnly || !relation.mayAddTriggers ? [] : triggers;
  const needed = [
    ...columns.leftOut.filter(({ isNeeded }) => isNeeded).map(({ column }) => column.name),
    ...(relation.mayInsert ? fields.filter((one) => isDeniedValue(one, owner)).map(({ name }) => name) : []),
  ];
  const isLacking = needed.length > 0 && !relation.fillsRows;
  const rules = isReadOnly ? {} : importedRules({ resource, fields, ownerColumn: owner, isSoleKey });
  const searchable = fields.filter(isSearchable).map(({ name }) => name);
  const unique = uniqueColumns
    .filter(
      (numbers, index) =>
        ![key.columns, ...uniqueColumns.slice(0, index)].some((one) => haveSameColumns(one, numbers)),
    )
    .filter((numbers) => numbers.every((number) => table.fields.has(number)))
    .map((numbers) => numbers.map((number) => table.fields.get(number)));
  const content: FileContent = {
    name: resource,
    model,
    table: shortTable(table.table),
    managed: false,
    ...(isView && { view: true }),
    fields: Object.fromEntries(fields.map(({ name, field }) => [name, field])),
    triggers: ownTriggers,
    ...(!isView && unique.length > 0 && { unique }),
    ...rules,
    ...(owner !== undefined && { ownerColumn: owner }),
    ...(owner === undefined && { access: accessOf(isReadOnly, parts.ownerColumn !== undefined) }),
    ...(searchable.length > 0 && { searchableColumns: searchable }),
    ...(!isView && writesOf(relation, isReadOnly, isLacking)),
  };
  const { comments, remarks } = tableComments({
    table,
    fields,
    references,
    needed,
    ownTriggers,
    ownerRemarks,
  });
  return {
    file,
    table: table.table,
    resource,
    kind: relation.kind,
    content,
    comments: onlyOf(content, comments),
    remarks,
  };
}

/** Returns whether a new row needs a value that the role may not insert. */
function isDeniedValue({ name, imported }: FieldOfColumn, owner: string | undefined): boolean {
  const { column, isNotNull, default: given } = imported;
  const isFilled = !isNotNull || given !== undefined || column.isGenerated;
  return !column.mayInsert && (name === owner || !isFilled);
}

function haveSameColumns(one: readonly number[], other: readonly number[]): boolean {
  return one.length === other.length && one.every((number) => other.includes(number));
}

function writesOf(
  { mayInsert, deniedSequences, mayUpdate, mayDelete, replaced }: CatalogRelation,
  isReadOnly: boolean,
  isLacking: boolean,
): FileContent {
  const cannot = (may: boolean, what: string): boolean => isReadOnly || !may || replaced.includes(what);
  const mayCreate = mayInsert && deniedSequences.length === 0;
  return {
    ...((cannot(mayCreate, "INSERT") || isLacking) && { supportsCreate: false }),
    ...(cannot(mayUpdate, "UPDATE") && { supportsUpdate: false }),
    ...(cannot(mayDelete, "DELETE") && { supportsDelete: false }),
  };
}

/**
 * Returns the access rules of records without an owner: only admins have access. By default every
 * user could create such records, which does not fit an existing table.
 *
 * @param isReferred Whether users have records of their own that may reference these records.
 */
function accessOf(isReadOnly: boolean, isReferred: boolean): FileContent {
  const writes = { create: "admin", update: "admin", delete: "admin" };
  return { read: "admin", ...(!isReadOnly && writes), ...(isReferred && { reference: "everyone" }) };
}

/** Leaves out the comments of keys that the file does not have. */
function onlyOf(content: FileContent, comments: Comments): Comments {
  const isThere = (place: string): boolean => place === "" || place.startsWith("fields.") || place in content;
  return Object.fromEntries(
    Object.entries(comments).filter(([place, lines]) => lines.length > 0 && isThere(place)),
  );
}

function fieldOf(imported: ImportedColumn, parts: FileParts): FieldOfColumn {
  const { table, references, typeOf, isUnique, refused } = parts;
  const { column, isNotNull, isGenerated, isCounted, default: given } = imported;
  const name = table.fields.get(column.number) ?? column.name;
  const isKey = table.key.columns.includes(column.number);
  const isSoleKey = isKey && table.key.columns.length === 1;
  const typed = typeOf(imported);
  const { type, list, native } = typed;
  const reference = references.references.get(column.number);
  // The service assumes that the database generates a number or UUID that alone is the key.
  const isImplied = isSoleKey && (isCounted || given?.kind === "uuid");
  const isUniqueField =
    !isSoleKey &&
    list === undefined &&
    isUnique(column.number) &&
    !refused.has(`${table.table}\0${column.name}\0unique`);
  const field: FileField = {
    type,
    ...(isKey && { id: true }),
    ...(column.name !== name && { column: column.name }),
    ...(list === true && { list: true }),
    ...(native !== undefined && { native }),
    ...typeOptionsOf(typed),
    ...(!isNotNull && !isKey && list === undefined && { optional: true }),
    ...(isUniqueField && { unique: true }),
    ...(isGenerated && !isImplied && { generated: true }),
    ...(!isGenerated && !isImplied && defaultOf(imported)),
    ...(reference !== undefined && {
      references: reference.references,
      as: reference.as,
      ...(reference.onDelete !== undefined && { onDelete: reference.onDelete }),
    }),
  };
  return { name, field, imported };
}

function defaultOf({ column, default: given, typed, isNotNull }: ImportedColumn): { default?: unknown } {
  // A list is never optional, so the rules would otherwise require one that may be NULL.
  if (given === undefined) return typed.list === true && !isNotNull ? { default: "database" } : {};
  // The service inserts a literal and `now` itself.
  if (!column.mayInsert) return { default: "database" };
  return { default: given.kind === "literal" ? given.value : given.kind };
}

const searchedTypes: readonly string[] = ["text", "varchar", "bpchar", "citext", "name"];
function isSearchable({ field, imported: { baseType, column } }: FieldOfColumn): boolean {
  const isText = field.type === "String" && field.list !== true && searchedTypes.includes(baseType);
  return isText && !isSecret(column.name);
}

/**
 * Returns the field of the owner column, or a remark when its type cannot hold the id of a user.
 */
function ownerOf(
  fields: readonly FieldOfColumn[],
  column: string | undefined,
): { readonly owner?: string; readonly ownerRemarks: readonly string[] } {
  const found = fields.find(({ imported }) => imported.column.name === column);
  if (found === undefined) return { ownerRemarks: [] };
  const { name, field, imported } = found;
  if (ownerTypes.includes(field.type) && field.list !== true) return { owner: name, ownerRemarks: [] };
  const remark = `${name} is no owner: no id of a user of svc fits ${imported.column.type}. Its records are for admins only.`;
  return { ownerRemarks: [remark] };
}
