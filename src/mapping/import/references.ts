import { isReserved } from "../read/fields.ts";
import type { CatalogConstraint } from "./catalog.ts";
import type { ImportedColumn } from "./column.ts";
import type { ChosenTable } from "./imported-table.ts";
import { freeName, joinedName, singularNameOf } from "./names.ts";
import { isWholeNumber, type TypedField } from "./column-type.ts";

/** A foreign key of one column, in the form of a field. */
interface ImportedReference {
  /** `customers.id`. */
  readonly references: string;
  readonly as: string;
  readonly onDelete: "cascade" | "setNull" | undefined;
}

/**
 * The references of a table's columns, by column number, and the reasons why other foreign keys are
 * none.
 */
export interface TableReferences {
  readonly references: ReadonlyMap<number, ImportedReference>;
  readonly plain: ReadonlyMap<number, string>;
  /** Remarks on foreign keys of several columns. */
  readonly remarks: readonly string[];
}

interface LinkedColumn {
  readonly from: ChosenTable;
  readonly column: number;
  readonly to: ChosenTable;
  readonly target: number;
  readonly constraint: CatalogConstraint;
}

/** Finds the references of every table. */
export function findReferences({
  tables,
  constraints,
  isUnique,
  refused,
}: {
  readonly tables: readonly ChosenTable[];
  readonly constraints: readonly CatalogConstraint[];
  /** Returns whether a column alone is unique. */
  readonly isUnique: (relation: number, column: number) => boolean;
  /** Reasons by table and column, with NUL between them. */
  readonly refused: ReadonlyMap<string, string>;
}): {
  readonly of: (table: ChosenTable) => TableReferences;
  /** Returns the type of a column, which both ends of a reference share. */
  readonly typeOf: (table: ChosenTable, one: ImportedColumn) => TypedField;
} {
  const byOid = new Map(tables.map((table) => [table.relation.oid, table]));
  const links: LinkedColumn[] = [];
  const plain = new Map<ChosenTable, Map<number, string>>(tables.map((table) => [table, new Map()]));
  const remarks = new Map<ChosenTable, string[]>(tables.map((table) => [table, []]));
  const foreign = constraints.filter(({ kind, relation }) => kind === "foreign" && byOid.has(relation));
  for (const constraint of foreign) {
    const from = byOid.get(constraint.relation) as ChosenTable;
    const [column = 0, ...more] = constraint.columns;
    const name = (number: number): string => from.fields.get(number) ?? String(number);
    const to = byOid.get(constraint.target);
    const reason = obstacleOf(constraint, from, to, isUnique, refused);
    if (more.length > 0 && reason !== undefined)
      remarks.get(from)?.push(`${constraint.columns.map(name).join(" and ")}: ${reason}.`);
    else if (reason !== undefined) plain.get(from)?.set(column, reason);
    else if (to !== undefined)
      links.push({ from, column, to, target: constraint.targetColumns[0] ?? 0, constraint });
  }
  const promoted = promotedColumns(tables, links);
  const typeOf = (table: ChosenTable, one: ImportedColumn): TypedField =>
    promoted.has(`${table.relation.oid} ${one.column.number}`) ? { type: "BigInt" } : one.typed;
  return {
    typeOf,
    of: (table) => ({
      references: nameReferences(
        table,
        links.filter(({ from }) => from === table),
      ),
      plain: plain.get(table) ?? new Map(),
      remarks: remarks.get(table) ?? [],
    }),
  };
}

function obstacleOf(
  { columns, target, targetName, targetColumns }: CatalogConstraint,
  from: ChosenTable,
  to: ChosenTable | undefined,
  isUnique: (relation: number, column: number) => boolean,
  refused: ReadonlyMap<string, string>,
): string | undefined {
  const [column = 0, ...more] = columns;
  const [targetColumn = 0] = targetColumns;
  if (to === undefined) return `it refers to ${targetName ?? "a table"}, which is left out`;
  if (more.length > 0) return `they refer to ${to.resource} together, and \`references\` is for one field`;
  const own = from.columns.columns.find((one) => one.column.number === column);
  const other = to.columns.columns.find((one) => one.column.number === targetColumn);
  const reason = refused.get(`${from.table}\0${own?.column.name}\0references`);
  if (reason !== undefined) return `it refers to ${to.resource}: ${reason}`;
  if (own === undefined || other === undefined)
    return `it refers to a column of ${to.resource} that is left out`;
  const isKey = to.key.columns.length === 1 && to.key.columns[0] === targetColumn;
  if (!isKey && !isUnique(target, targetColumn))
    return `it refers to ${to.resource}.${to.fields.get(targetColumn)}, which is not unique by itself`;
  const isList = own.typed.list === true || other.typed.list === true;
  if (isList || kindOf(own.typed) !== kindOf(other.typed))
    return `it refers to ${to.resource}.${to.fields.get(targetColumn)}, which is of another type`;
  return undefined;
}

/**
 * Returns the kind of a type. Whole numbers of all sizes have one kind, because they can be
 * converted to the same type.
 */
function kindOf(typed: TypedField): string {
  return typed.native ?? (isWholeNumber(typed) ? "Int" : typed.type);
}

/**
 * Returns the columns of whole numbers that get 64 bits here. They are keys of decimals, and
 * columns that reference a column of 64 bits or are referenced by one.
 */
function promotedColumns(
  tables: readonly ChosenTable[],
  links: readonly LinkedColumn[],
): ReadonlySet<string> {
  const wide = new Set(
    tables.flatMap(({ relation, key, columns: { columns } }) =>
      columns
        .filter(
          ({ column, typed }) =>
            key.columns.includes(column.number) && isWholeNumber(typed) && typed.type === "Decimal",
        )
        .map(({ column }) => `${relation.oid} ${column.number}`),
    ),
  );
  const ends = links.map(({ from, column, to, target }) => {
    const sides = [
      { key: `${from.relation.oid} ${column}`, table: from, number: column },
      { key: `${to.relation.oid} ${target}`, table: to, number: target },
    ];
    for (const { key, table, number } of sides) {
      const found = table.columns.columns.find((one) => one.column.number === number);
      if (found !== undefined && isWholeNumber(found.typed) && found.typed.type !== "Int") wide.add(key);
    }
    return sides.map(({ key }) => key);
  });
  for (let before = -1; before < wide.size;) {
    before = wide.size;
    for (const keys of ends) if (keys.some((key) => wide.has(key))) for (const key of keys) wide.add(key);
  }
  return wide;
}

function nameReferences(
  table: ChosenTable,
  links: readonly LinkedColumn[],
): ReadonlyMap<number, ImportedReference> {
  const taken = new Set(table.fields.values());
  const references = new Map<number, ImportedReference>();
  for (const { column, to, target, constraint } of links) {
    // A second foreign key of the same column adds nothing to the reference.
    if (references.has(column)) continue;
    const field = table.fields.get(column) ?? "";
    const as = relationNameOf(
      field,
      singularNameOf(to.resource),
      (name) => taken.has(name) || isReserved(name),
    );
    taken.add(as);
    const isOptional = table.columns.columns.some((one) => one.column.number === column && !one.isNotNull);
    const { onDelete } = constraint;
    references.set(column, {
      references: `${to.resource}.${to.fields.get(target)}`,
      as,
      onDelete:
        onDelete === "cascade" ||
        (onDelete === "setNull" && isOptional && !table.key.columns.includes(column))
          ? onDelete
          : undefined,
    });
  }
  return references;
}

const snakeEnding = /_(?:id|uuid|guid|fk|code|key|no|nr|num|number|ref|sk|pk)$/i;
const camelEnding = /(?<=[a-z0-9])(?:I[dD]|U[uU][iI][dD]|G[uU][iI][dD]|F[kK]|Code|Key|No|Nr)$/;
const beginning = /^(?:id|fk)_(?=.)/i;

/** Returns the name of a relation: `billing_address` for `billing_address_id`. */
function relationNameOf(field: string, target: string, isTaken: (name: string) => boolean): string {
  const base = field.replace(snakeEnding, "").replace(camelEnding, "").replace(beginning, "");
  const names = base === "" || base === field ? [] : [base];
  const withTarget = base.toLowerCase() === target || base === "" ? [] : [joinedName(base, target)];
  return freeName([...names, ...withTarget, target, joinedName(field, "record")], isTaken);
}
