import type { CatalogRelation, UniqueIndex } from "./catalog.ts";
import type { ImportedColumn, ImportedColumns } from "./column.ts";
import { keyTypes } from "../read/fields.ts";
import { provedKeys } from "./view-key.ts";
import type { FindTable } from "./view-sources.ts";

/** The key of a resource: numbers of its columns, and a remark when it is not the primary key. */
export interface TableKey {
  readonly columns: readonly number[];
  readonly remark?: string;
}

/**
 * Chooses the key of a table or view, or returns the reason why it has none.
 *
 * @param indexes Unique indexes of the table, the primary key first.
 */
export function chooseKey({
  relation,
  columns: { columns, leftOut },
  indexes,
  findTable,
}: {
  readonly relation: CatalogRelation;
  readonly columns: ImportedColumns;
  readonly indexes: readonly UniqueIndex[];
  readonly findTable: FindTable;
}): TableKey | { readonly reason: string } {
  const byNumber = new Map(columns.map((one) => [one.column.number, one]));
  const fits = ({ columns: numbers }: UniqueIndex): boolean => isKey(numbers, byNumber, relation);
  const primary = indexes.find(({ isPrimary }) => isPrimary);
  if (primary !== undefined && fits(primary)) return { columns: primary.columns };
  const other = indexes.find((index) => !index.isPrimary && fits(index));
  if (other !== undefined) {
    const names = namesOf(other.columns, byNumber).join(", ");
    const isView = relation.kind === "materialized view";
    const why =
      primary === undefined ? "it has no primary key" : "the type of its primary key is none of a key";
    return {
      columns: other.columns,
      remark: isView
        ? `The key is ${names}, which the unique index ${other.name} holds.`
        : `The key is ${names}, of the unique index ${other.name}: ${why}.`,
    };
  }
  if (primary !== undefined) {
    const parts = primary.columns.map((number) => {
      const found = byNumber.get(number) ?? leftOut.find(({ column }) => column.number === number);
      return found === undefined ? String(number) : `${found.column.name} ${found.column.type}`;
    });
    return { reason: `no key can be of this type: PRIMARY KEY (${parts.join(", ")})` };
  }
  if (relation.kind === "table" || relation.kind === "partitioned table")
    return {
      reason:
        "it has neither a primary key nor a unique index over columns that are NOT NULL, so that nothing tells its rows apart; add a primary key, and import it again",
    };
  return keyOfView(relation, columns, findTable);
}

function namesOf(
  numbers: readonly number[],
  byNumber: ReadonlyMap<number, ImportedColumn>,
): readonly string[] {
  return numbers.map((number) => byNumber.get(number)?.column.name ?? String(number));
}

function isKey(
  numbers: readonly number[],
  byNumber: ReadonlyMap<number, ImportedColumn>,
  { kind }: CatalogRelation,
): boolean {
  return numbers.every((number) => {
    const found = byNumber.get(number);
    // Columns of a materialized view are never NOT NULL, so all of them are accepted.
    const isFilled = found?.isNotNull === true || kind === "materialized view";
    return found !== undefined && isFilled && isKeyType(found);
  });
}

function isKeyType({ typed }: ImportedColumn): boolean {
  return typed.list === undefined && keyTypes.includes(typed.type);
}

function keyOfView(
  { kind, definition, makesRows }: CatalogRelation,
  columns: readonly ImportedColumn[],
  findTable: FindTable,
): TableKey | { readonly reason: string } {
  const find = (name: string): ImportedColumn | undefined =>
    columns.find((one) => one.column.name === name && isKeyType(one));
  const proved = definition === null ? [] : provedKeys(definition, findTable, makesRows);
  const known = proved.map((names) => names.map(find)).find((parts) => !parts.includes(undefined));
  if (known !== undefined) {
    const parts = known.flatMap((one) => (one === undefined ? [] : [one.column]));
    return {
      columns: parts.map(({ number }) => number),
      remark: `The key is ${parts.map(({ name }) => name).join(", ")}, which the SQL of the view shows to be unique.`,
    };
  }
  const guess = ["id", "ID", "Id"].map(find).find((one) => one !== undefined);
  if (guess !== undefined)
    return {
      columns: [guess.column.number],
      remark: `The key is ${guess.column.name}, by its name only: see that no two rows of the ${kind} share it.`,
    };
  return {
    reason: `no column of the ${kind} is known to be unique, and none is named id; add such a column, and import it again`,
  };
}
