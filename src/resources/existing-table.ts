import type { LiveColumn, LiveRelation } from "../db/live-tables.ts";
import { hint } from "../did-you-mean.ts";
import type { Definition, Field, FieldType } from "./definition.ts";

/** What a mapping file and the table that it maps say differently; every entry a sentence that names the file. */
export interface TableFindings {
  /** Reads or events would go wrong. */
  readonly faults: readonly string[];
  /** Single requests might. */
  readonly notes: readonly string[];
}

const text = ["text", "varchar", "bpchar", "citext", "name", "enum"];

/** The column types that Prisma reads and writes as a field's type, without loss. */
const columnTypes: Readonly<Record<FieldType, readonly string[]>> = {
  Int: ["int4", "int2"],
  BigInt: ["int8", "int4", "int2"],
  Float: ["float8", "float4"],
  Decimal: ["numeric"],
  String: [...text, "inet", "cidr", "xml"],
  Boolean: ["bool"],
  DateTime: ["timestamptz", "timestamp", "date"],
  Json: ["jsonb", "json"],
  Bytes: ["bytea"],
  Uuid: ["uuid"],
  Enum: text,
};

/**
 * Holds the mapping of an existing table, `managed: false`, against the table.
 *
 * @param relations Everything in the schema that has a table's place; the definition's may be missing.
 * @param columns Those of the table.
 */
export function checkExistingTable({
  definition,
  relations,
  columns,
}: {
  readonly definition: Definition;
  readonly relations: readonly LiveRelation[];
  readonly columns: readonly LiveColumn[];
}): TableFindings {
  const { file, table, fields, key } = definition;
  const found = relations.find(({ name }) => name === table);
  if (found === undefined) {
    const tables = relations.filter(({ kind }) => kind === "table").map(({ name }) => name);
    return only(`${file}: there is no table "${table}"${hint(table, tables)}`);
  }
  const faults: string[] = [];
  if (found.kind !== "table" && definition.triggers.length > 0)
    return only(
      `${file}: "${table}" is a ${found.kind}, whose changes cannot be captured; use the table beneath it, or no triggers`,
    );

  const byName = new Map(columns.map((column) => [column.name, column]));
  for (const field of fields) {
    const column = byName.get(field.column);
    const fault = column === undefined ? missing(field, columns) : mismatch(field, column);
    if (fault !== undefined) faults.push(`${file}: fields.${field.name}: ${fault}`);
  }
  if (found.kind === "table" && byName.get(key.column)?.isKey === false) {
    faults.push(
      `${file}: fields.${key.name}: the column "${key.column}" of "${table}" is neither its primary key nor unique by itself`,
    );
  }
  return { faults, notes: notesOn(definition, columns) };
}

function only(fault: string): TableFindings {
  return { faults: [fault], notes: [] };
}

function missing(field: Field, columns: readonly LiveColumn[]): string {
  const names = columns.map(({ name }) => name);
  return `there is no column "${field.column}"${hint(field.column, names)} (the columns are ${names.join(", ")})`;
}

function mismatch({ type, isList }: Field, column: LiveColumn): string | undefined {
  if (isList !== column.isList)
    return `the column is ${column.type}, ${column.isList ? 'a list: say "list: true"' : "no list"}`;
  if (columnTypes[type].includes(column.baseType)) return undefined;
  const fitting = Object.entries(columnTypes).find(([, types]) => types.includes(column.baseType))?.[0];
  return `the column is ${column.type}, which ${fitting === undefined ? "no field type fits" : `is ${fitting}`}, not ${type}`;
}

function notesOn(definition: Definition, columns: readonly LiveColumn[]): readonly string[] {
  const notes: string[] = [];
  for (const column of columns) {
    const field = definition.fields.find((candidate) => candidate.column === column.name);
    if (field !== undefined && column.isNullable && !field.isOptional && !field.isList) {
      notes.push(
        `${definition.file}: fields.${field.name}: the column may be null: a record where it is cannot be read unless the field says "optional: true".`,
      );
    }
    if (field !== undefined && isLeftToTable(field, definition) && !column.isFilled) {
      notes.push(
        `${definition.file}: fields.${field.name}: the column has no default: no record can be created unless \`createRules\` names the field.`,
      );
    }
    if (field === undefined && !column.isNullable && !column.isFilled && definition.supportsCreate) {
      notes.push(
        `${definition.file}: the column "${column.name}" must have a value and has no default: no record can be created unless a field maps it.`,
      );
    }
  }
  return notes;
}

/** A number or UUID that the service does not make itself. */
function isLeftToTable(
  { name, default: given }: Field,
  { supportsCreate, createRules, code }: Definition,
): boolean {
  const isGenerated = given?.kind === "autoincrement" || given?.kind === "uuid";
  return isGenerated && supportsCreate && createRules?.[name] === undefined && code.createRules === undefined;
}
