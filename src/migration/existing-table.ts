import type { ClientBase } from "pg";
import { readColumns, readUniques } from "./live-tables.ts";
import type { LiveColumn, LiveRelation, LiveUnique } from "./live-tables.ts";
import { hint, questionOf } from "../kit/did-you-mean.ts";
import { groupBy } from "../kit/group-by.ts";
import type { Definition, Field, FieldType } from "../mapping/definition.ts";

/**
 * Differences between a mapping file and its table. Each is a sentence that names the place in the
 * file.
 */
interface TableFindings {
  /** Differences that break reads or events. */
  readonly faults: readonly string[];
  /** Differences that may break single requests. */
  readonly notes: readonly string[];
}

const text = ["text", "varchar", "bpchar", "citext", "name", "enum"];

/** Column types that Prisma reads and writes as each field type, without loss. */
const columnTypes: Readonly<Record<FieldType, readonly string[]>> = {
  Int: ["int4", "int2"],
  BigInt: ["int8", "int4", "int2"],
  Float: ["float8", "float4"],
  Decimal: ["numeric"],
  String: [...text, "inet", "cidr", "xml"],
  Boolean: ["bool"],
  DateTime: ["timestamptz", "timestamp", "date"],
  Instant: ["timestamptz", "timestamp"],
  Date: ["date"],
  Time: ["time"],
  Interval: ["interval"],
  Json: ["jsonb", "json"],
  Bytes: ["bytea"],
  Uuid: ["uuid"],
  Enum: text,
};

/**
 * Compares the mappings of existing tables (`managed: false`) with the tables.
 *
 * @param relations Every table, view and foreign table of the schemas; those of the definitions may
 *   be missing.
 */
export async function checkExistingTables(
  client: ClientBase,
  definitions: readonly Definition[],
  relations: readonly LiveRelation[],
): Promise<readonly TableFindings[]> {
  const tables = definitions.map(({ table }) => table);
  const columns = groupBy(await readColumns(client, tables), ({ table }) => table);
  const uniques = groupBy(await readUniques(client, tables), ({ table }) => table);
  return definitions.map((definition) => {
    const { table } = definition;
    return checkTable(definition, relations, columns.get(table) ?? [], uniques.get(table) ?? []);
  });
}

function checkTable(
  definition: Definition,
  relations: readonly LiveRelation[],
  columns: readonly LiveColumn[],
  uniques: readonly LiveUnique[],
): TableFindings {
  const { table, fields, key, remark } = definition;
  const tablePath = [table === definition.name ? "name" : "table"];
  const found = relations.find(({ name }) => name === table);
  if (found === undefined) {
    const tables = relations.filter(({ kind }) => kind === "table").map(({ name }) => name);
    return only(remark(tablePath, `there is no table "${table}"${hint(table, tables)}`));
  }
  if (found.kind !== "table" && definition.triggers.length > 0) {
    const message = `"${table}" is a ${found.kind}, whose changes cannot be captured; use the table beneath it, or no triggers`;
    return only(remark(tablePath, message));
  }
  const viewFault = viewFaultOf(definition, found);
  if (viewFault !== undefined) return only(remark(tablePath, viewFault));

  const faults: string[] = [];
  const byName = new Map(columns.map((column) => [column.name, column]));
  for (const field of fields) {
    const column = byName.get(field.column);
    const fault =
      column === undefined
        ? missing(field, columns)
        : (mismatch(field, column) ??
          generatedFault(field, column, definition) ??
          virtualFault(column, definition));
    if (fault !== undefined) faults.push(remark(["fields", field.name], fault));
  }
  if (found.kind === "table") {
    const keyFault = keyFaultOf(definition, columns, uniques);
    if (keyFault !== undefined) faults.push(remark(["fields", key.name], keyFault));
    for (const [index, names] of definition.uniques.entries()) {
      const wanted = names.map((name) => fields.find((field) => field.name === name)?.column ?? name);
      if (!isUnique(wanted, uniques))
        faults.push(
          remark(["unique", index], `no unique index of "${table}" has the columns ${wanted.join(", ")}`),
        );
    }
  }
  const notes = [...notesOn(definition, columns)];
  for (const { name, column } of found.kind === "table" ? fields.filter((field) => field.isUnique) : []) {
    if (!byName.has(column) || isUnique([column], uniques)) continue;
    const lacking = `no unique index of "${table}" has only the column ${column}`;
    const from = definition.relations.find((one) => one.kind === "many" && one.localField === name)?.resource;
    // A list would show a record of that resource once for each row with the value.
    if (from === undefined)
      notes.push(
        remark(["fields", name], `${lacking}: requests at the same moment may store a value twice.`),
      );
    else
      faults.push(
        remark(
          ["fields", name],
          `${lacking}, and "${from}" refers to it: make such an index, or remove the reference`,
        ),
      );
  }
  return { faults, notes };
}

function only(fault: string): TableFindings {
  return { faults: [fault], notes: [] };
}

function viewFaultOf(
  { table, isView, supportsCreate, supportsUpdate, supportsDelete }: Definition,
  found: LiveRelation,
): string | undefined {
  if (isView) return found.kind === "view" ? undefined : `"${table}" is a ${found.kind}, not a view`;
  const isWritten = supportsCreate || supportsUpdate || supportsDelete;
  return found.kind === "view" && isWritten
    ? `"${table}" is a view: say "view: true", which makes its records read-only`
    : undefined;
}

/** Returns whether a unique index ensures that no two rows have the same values in the columns. */
function isUnique(columns: readonly string[], uniques: readonly LiveUnique[]): boolean {
  return uniques.some((unique) => unique.columns.every((name) => columns.includes(name)));
}

function keyFaultOf(
  { table, keys, key, triggers }: Definition,
  columns: readonly LiveColumn[],
  uniques: readonly LiveUnique[],
): string | undefined {
  const names = keys.map(({ column }) => column);
  if (isUnique(names, uniques)) {
    const nullable = columns.find(({ name, isNullable }) => isNullable && names.includes(name))?.name;
    // An event has the id of its record. Without one, the writer's statement would fail.
    return nullable === undefined || triggers.length === 0
      ? undefined
      : `the column "${nullable}" of the key may be null, and no program could write such a row any more: make it NOT NULL, or say "triggers: []"`;
  }
  const primary = columns.filter(({ isPrimary }) => isPrimary).map(({ name }) => name);
  if (primary.length > 1)
    return `the key of "${table}" has several columns (${primary.join(", ")}): say "id: true" at the field of each`;
  const column = columns.find(({ name }) => name === key.column);
  // The missing column is reported already.
  if (column === undefined) return undefined;
  if (keys.length > 1)
    return `no unique index of "${table}" has only columns of the key (${names.join(", ")})`;
  return primary.length === 0
    ? `the table "${table}" has no primary key, and its column "${column.name}" is not unique by itself`
    : `the primary key of "${table}" is "${primary.join("")}", and its column "${column.name}" is not unique by itself`;
}

function missing(field: Field, columns: readonly LiveColumn[]): string {
  const names = columns.map(({ name }) => name);
  const question = questionOf(field.column, names);
  return `there is no column "${field.column}"${question} (the columns are ${names.join(", ")})`;
}

/** Returns a fault when the API would write a column that PostgreSQL computes. */
function generatedFault(
  { name, isGenerated, default: given }: Field,
  column: LiveColumn,
  { createRules }: Definition,
): string | undefined {
  if (!column.isGenerated || isGenerated === true) return undefined;
  const isLeft = given?.kind === "autoincrement" && createRules?.[name] === undefined;
  return isLeft ? undefined : 'the database always computes the column: say "generated: true"';
}

/** Returns a fault when events would show null instead of a value that is computed at each read. */
function virtualFault({ isVirtual }: LiveColumn, { triggers }: Definition): string | undefined {
  if (!isVirtual || triggers.length === 0) return undefined;
  return 'the column is generated and not stored, and triggers cannot see its values: make it STORED, leave the field out, or say "triggers: []"';
}

/** Returns whether the column has the PostgreSQL type that the field names. */
function isNative(native: string, { type, baseType, ownType }: LiveColumn): boolean {
  const [last = ""] = plainType(native).split(".").toReversed();
  const names = [plainType(type), baseType, ownType.toLowerCase()];
  return names.some((name) => name === last || name === plainType(native));
}

/** Returns a type without its arguments: `bit` for `bit(8)`. */
function plainType(name: string): string {
  return name.replace(/\(.*\)|\[\]$/g, "").toLowerCase();
}

/**
 * Returns whether a `numeric` holds only whole numbers of 64 bits, as in keys from other databases.
 */
function isWholeNumber({ baseType, type }: LiveColumn): boolean {
  const [, digits] = /^numeric\((\d+),0\)/.exec(type) ?? [];
  return baseType === "numeric" && digits !== undefined && Number(digits) <= 18;
}

function mismatch({ type, isList, native }: Field, column: LiveColumn): string | undefined {
  if (isList !== column.isList)
    return `the column is ${column.type}, ${column.isList ? 'a list: say "list: true"' : "no list"}`;
  if (native !== undefined)
    return isNative(native, column) ? undefined : `the column is ${column.type}, not ${native}`;
  if (columnTypes[type].includes(column.baseType)) return undefined;
  if (type === "BigInt" && isWholeNumber(column)) return undefined;
  // Mapping files have no Instant.
  const fitting = Object.keys(columnTypes).filter(
    (one) => one !== "Instant" && columnTypes[one as FieldType].includes(column.baseType),
  );
  if (fitting.length === 0)
    return `the column is ${column.type}, which no field type fits: a String with "native: ${column.ownType}" has it as text`;
  return `the column is ${column.type}, which is ${fitting.join(" or ")}, not ${type}`;
}

function notesOn(definition: Definition, columns: readonly LiveColumn[]): readonly string[] {
  const { fields, remark, supportsCreate } = definition;
  const notes: string[] = [];
  for (const column of columns) {
    const field = fields.find((candidate) => candidate.column === column.name);
    const note = (path: readonly string[], message: string): void => void notes.push(remark(path, message));
    // The columns of a view are never NOT NULL.
    const isKeyOfView = definition.isView && field?.isKey === true;
    if (field !== undefined && column.isNullable && !field.isOptional && !field.isList && !isKeyOfView) {
      note(
        ["fields", field.name],
        'the column may be null: a record where it is cannot be read unless the field says "optional: true".',
      );
    }
    const { labels } = column;
    const gone = labels === null ? [] : (field?.values ?? []).filter((value) => !labels.includes(value));
    if (field !== undefined && gone.length > 0) {
      note(
        ["fields", field.name, "values"],
        `the enum of the column has no ${gone.join(", ")}: every request and filter with it fails. \`svc-admin import --update\` follows the enum.`,
      );
    }
    if (field !== undefined && isLeftToTable(field, definition) && !column.isFilled) {
      note(
        ["fields", field.name],
        "the column has no default: no record can be created unless `createRules` names the field.",
      );
    }
    if (field === undefined && !column.isNullable && !column.isFilled && supportsCreate) {
      note(
        ["fields"],
        `the column "${column.name}" must have a value and has no default: no record can be created unless a field maps it.`,
      );
    }
  }
  return notes;
}

/**
 * Returns whether the table must fill the field: a number or UUID that the service does not
 * generate.
 */
function isLeftToTable(
  { name, default: given }: Field,
  { supportsCreate, createRules, code }: Definition,
): boolean {
  const isGenerated = given?.kind === "autoincrement" || given?.kind === "uuid";
  return isGenerated && supportsCreate && createRules?.[name] === undefined && code.createRules === undefined;
}
