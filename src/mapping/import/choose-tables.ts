import { tablesSchema } from "../../db/names.ts";
import { groupBy } from "../../kit/group-by.ts";
import { delegateNameOf, isReservedModel } from "../read/check-names.ts";
import { isReserved } from "../read/fields.ts";
import type { Catalog, CatalogColumn, CatalogRelation, UniqueIndex } from "./catalog.ts";
import { importColumns, type ImportedColumns } from "./column.ts";
import {
  tableNameOf,
  type ChosenTable,
  type ImportOptions,
  type KnownNames,
  type LeftOut,
} from "./imported-table.ts";
import { fieldNameOf, freeName, longestResource, modelNameOf, resourceNameOf } from "./names.ts";
import { chooseKey, type TableKey } from "./table-key.ts";
import type { FindTable } from "./view-sources.ts";

/** The tables that get files, and the others. */
interface ChosenTables {
  readonly tables: readonly ChosenTable[];
  readonly leftOut: readonly LeftOut[];
  /** Number of partitions, whose rows their parents serve. */
  readonly partitions: number;
}

interface Candidate {
  readonly relation: CatalogRelation;
  readonly columns: ImportedColumns;
  readonly key: TableKey;
}

/** Chooses the tables and views to import, their keys and their names. */
export function chooseTables(catalog: Catalog, options: ImportOptions): ChosenTables {
  const wanted = catalog.relations.filter(options.isWanted);
  const leftOut: LeftOut[] = [];
  const candidates: Candidate[] = [];
  const read = createReader(catalog, options);
  for (const relation of wanted) {
    if (relation.isPartition) continue;
    const found = read(relation);
    if ("reason" in found) leftOut.push({ table: tableNameOf(relation), reason: found.reason });
    else candidates.push(found);
  }
  return {
    tables: withNames(candidates, options.known),
    leftOut,
    partitions: wanted.filter(({ isPartition }) => isPartition).length,
  };
}

function createReader(
  catalog: Catalog,
  { refused, known }: ImportOptions,
): (relation: CatalogRelation) => Candidate | { readonly reason: string } {
  const columns = groupBy(catalog.columns, ({ relation }) => relation);
  const indexes = groupBy(catalog.indexes, ({ relation }) => relation);
  const checks = groupBy(
    catalog.constraints.filter(({ kind }) => kind === "check"),
    ({ relation }) => relation,
  );
  const types = new Map(catalog.types.map((type) => [type.oid, type]));
  const made = new Set(catalog.made.map(tableNameOf));
  const findTable = createFinder(catalog.relations, columns, indexes);
  return (relation) => {
    const table = tableNameOf(relation);
    const file = known.managed.get(table);
    const reason = made.has(table)
      ? "svc made it from a mapping file"
      : file !== undefined
        ? `the file ${file} maps it, as a table that svc makes`
        : (refused.get(table) ?? obstacleOf(relation));
    if (reason !== undefined) return { reason };
    const own = indexes.get(relation.oid) ?? [];
    const keyColumns = own.find(({ isPrimary }) => isPrimary)?.columns ?? [];
    const imported = importColumns({
      columns: columns.get(relation.oid) ?? [],
      types,
      checks: [...(checks.get(relation.oid) ?? []), ...(checks.get(0) ?? [])],
      keyColumn: keyColumns.length === 1 ? keyColumns[0] : undefined,
      refusalOf: (name) => refused.get(`${table}\0${name}`),
    });
    const key = chooseKey({ relation, columns: imported, indexes: own, findTable });
    return "reason" in key ? key : { relation, columns: imported, key };
  };
}

/** Returns the reason why a table gets no file, apart from its columns. */
function obstacleOf({
  schema,
  name,
  extension,
  mayUseSchema,
  maySelect,
}: CatalogRelation): string | undefined {
  if (extension !== null) return `it belongs to the extension ${extension}`;
  if (/["\p{Cc}]/u.test(name) || /["\p{Cc}]/u.test(schema))
    return "a mapping file cannot name it: it has a double quote or a control character";
  if (name.includes(".") || schema.includes("."))
    return "a mapping file cannot name it: it has a dot, which stands between schema and table";
  if (!mayUseSchema) return `permission denied; grant USAGE on the schema ${schema} to the role of svc`;
  return maySelect ? undefined : "permission denied; grant SELECT on it to the role of svc";
}

function createFinder(
  relations: readonly CatalogRelation[],
  columns: ReadonlyMap<number, readonly CatalogColumn[]>,
  indexes: ReadonlyMap<number, readonly UniqueIndex[]>,
): FindTable {
  const byName = groupBy(relations, ({ name }) => name);
  return (schema, name) => {
    // `public` is the only schema in the search path of the transaction.
    const table = byName.get(name)?.find((one) => one.schema === (schema ?? tablesSchema));
    if (table === undefined) return undefined;
    const own = columns.get(table.oid) ?? [];
    // A key does not apply to the rows of inheriting tables, and several rows may have NULL.
    const keys = table.children.length > 0 ? [] : (indexes.get(table.oid) ?? []);
    return {
      columns: own.map((column) => column.name),
      uniques: keys
        .map((index) => index.columns.map((number) => own.find((column) => column.number === number)))
        .filter((parts) => parts.every((part) => part?.isNotNull === true))
        .map((parts) => parts.flatMap((part) => part?.name ?? [])),
    };
  };
}

function withNames(candidates: readonly Candidate[], known: KnownNames): readonly ChosenTable[] {
  const kept = [...known.files.values()];
  const resources = new Set([...known.resources, ...kept.map(({ resource }) => resource)]);
  const models = new Set([...known.models, ...kept.map(({ model }) => delegateNameOf(model))]);
  // A table with a valid name keeps it, regardless of the order.
  const first = candidates.toSorted((a, b) => Number(isFitting(b)) - Number(isFitting(a)));
  const named = new Map<CatalogRelation, ChosenTable>();
  for (const { relation, columns, key } of first) {
    const table = tableNameOf(relation);
    const before = known.files.get(table);
    const resource = before?.resource ?? freeResource(relation, resources);
    const model = before?.model ?? freeModel(relation, resource, models);
    resources.add(resource);
    models.add(delegateNameOf(model));
    const file = before?.file ?? `${resource}.yaml`;
    const fields = fieldNames(columns, before?.fields ?? new Map());
    named.set(relation, { relation, table, columns, key, resource, model, file, fields });
  }
  return candidates.flatMap(({ relation }) => named.get(relation) ?? []);
}

function isFitting({ relation: { name } }: Candidate): boolean {
  return resourceNameOf(name, "") === name;
}

function freeResource({ schema, name }: CatalogRelation, taken: ReadonlySet<string>): string {
  const plain = resourceNameOf(name, "table");
  const long = resourceNameOf(`${schema}_${plain}`, plain);
  return freeName([plain, long], (one) => taken.has(one), longestResource);
}

function freeModel({ schema }: CatalogRelation, resource: string, taken: ReadonlySet<string>): string {
  const plain = modelNameOf(resource);
  const candidates = [plain, modelNameOf(`${schema}_${resource}`), `${plain}Record`].filter((name) =>
    /^[A-Za-z]/.test(name),
  );
  return freeName(candidates, (name) => taken.has(delegateNameOf(name)) || isReservedModel(name));
}

function fieldNames(
  { columns }: ImportedColumns,
  before: ReadonlyMap<string, string>,
): ReadonlyMap<number, string> {
  const taken = new Set(before.values());
  const names = new Map<number, string>();
  const all = columns.map(({ column }) => ({
    column,
    plain: fieldNameOf(column.name, `column_${column.number}`),
  }));
  const first = all.toSorted((a, b) => Number(b.plain === b.column.name) - Number(a.plain === a.column.name));
  for (const { column, plain } of first) {
    const known = before.get(column.name);
    const name = known ?? freeName([plain, `${plain}_value`], (one) => taken.has(one) || isReserved(one));
    taken.add(name);
    names.set(column.number, name);
  }
  return names;
}
