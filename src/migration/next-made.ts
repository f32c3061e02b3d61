import type { ChangePlan, WantedTable } from "./judge-changes.ts";
import { keyOf, keyOfObject, type LiveObject } from "./live-objects.ts";
import type { MadeObject } from "./made.ts";
import type { PartsPlan } from "./planned-parts.ts";
import { isTableIndex } from "./table-indexes.ts";

/** The next record of the managed tables, and remarks on it. */
interface NextRecord {
  /** All rows of each table whose record changes. */
  readonly rows: readonly (readonly [table: string, rows: readonly Omit<MadeObject, "table">[]])[];
  readonly notes: readonly string[];
  readonly leftAlone: readonly LiveObject[];
}

/** The data from which the next record follows. */
interface Given {
  readonly wanted: readonly WantedTable[];
  readonly objects: readonly LiveObject[];
  readonly made: ReadonlyMap<string, MadeObject>;
  /**
   * Keys (`keyOf`) of the parts that the comparison saw. Parts that it did not change equal the
   * mapping file.
   */
  readonly seen: ReadonlySet<string>;
  readonly changePlan: ChangePlan;
  readonly partsPlan: PartsPlan;
}

/**
 * Returns the record for the time after the plan was carried out. Pure.
 *
 * A part belongs to the service when the plan makes it, or when it is on record. In a table from a
 * version without a record, a part that equals the mapping file belongs to it too. A part of
 * another program that equals the mapping file is recorded as found: it is used, and never dropped.
 */
export function nextRecord(given: Given): NextRecord {
  const { wanted, objects, made, changePlan, partsPlan } = given;
  const asked = new Set(partsPlan.parts.map(keyOfObject));
  const isGone = (key: string): boolean => changePlan.dropped.has(key) || partsPlan.dropped.has(key);
  const notes: string[] = [];
  const leftAlone: LiveObject[] = [];
  const rows = wanted.flatMap((one) => {
    const { table, before } = one;
    const live = objects.filter((object) => object.table === table);
    const next = rowsOf(one, live, given);
    const kept = new Set(next.map(({ kind, name }) => keyOf(kind, table, name)));
    const found = next.filter(({ kind, name, isMade }) => !isMade && !made.has(keyOf(kind, table, name)));
    if (before !== undefined)
      notes.push(
        `The table ${table} was made by a version of svc that kept no record of its parts: parts that equal the mapping file count as made by svc, and all others as made by somebody else.`,
      );
    // A table that was found as a whole gets only one note.
    const wholeTable = found.filter(({ kind }) => kind === "table");
    notes.push(
      ...(wholeTable.length > 0 ? wholeTable : found).map(({ kind, name }) => foundNote(table, kind, name)),
    );
    leftAlone.push(
      ...live.filter((object) => {
        const key = keyOfObject(object);
        return (!kept.has(key) || (!object.isPlain && !asked.has(key))) && !isGone(key);
      }),
    );
    return isDue(table, next, live, given) ? [[table, next] as const] : [];
  });
  return { rows, notes, leftAlone };
}

type Row = Omit<MadeObject, "table">;

function rowsOf(
  { table, columns, before }: WantedTable,
  live: readonly LiveObject[],
  { made, seen, changePlan, partsPlan }: Given,
): readonly Row[] {
  const isNewTable = changePlan.added.has(keyOf("table", table, table));
  const isMade = (kind: Row["kind"], name: string): boolean => {
    const key = keyOf(kind, table, name);
    return isNewTable || changePlan.added.has(key) || (made.get(key)?.isMade ?? before !== undefined);
  };
  const parts: readonly Row[] = live
    .filter((object) => (object.kind === "index" && !isTableIndex(object)) || object.what === "foreign key")
    .map(({ kind, name, definition, isPlain }) => {
      // A part that is not plain was replaced by hand, under the name of a part of the service.
      return { kind, name, isMade: isPlain && isMade(kind, name), definition };
    });
  const added = [...changePlan.added].flatMap(([key, of]) => {
    const [kind, , name] = JSON.parse(key) as [Row["kind"], string, string];
    return of === table && (kind === "index" || kind === "constraint")
      ? [{ kind, name, isMade: true, definition: "" }]
      : [];
  });
  const staying = parts.filter(({ kind, name }) => {
    const key = keyOf(kind, table, name);
    return seen.has(key) && !changePlan.dropped.has(key) && !changePlan.added.has(key);
  });
  return [
    { kind: "table", name: table, isMade: isMade("table", table), definition: "" },
    ...columns.map(({ name, wish }): Row => ({
      kind: "column",
      name,
      isMade: isMade("column", name),
      definition: JSON.stringify(wish),
    })),
    ...staying,
    ...added,
    ...partsPlan.parts
      .filter((part) => part.table === table)
      .map(({ kind, name }): Row => ({ kind, name, isMade: true, definition: "" })),
  ];
}

function foundNote(table: string, kind: Row["kind"], name: string): string {
  const what = kind === "table" ? `The table ${table}` : `The ${kind} ${name} of the table ${table}`;
  return `${what} already exists as the mapping file has it, and is used. svc did not make it, and will never drop it.`;
}

/**
 * Returns whether the record of a table must be written: it changes, or the plan touches the
 * objects of its definitions.
 */
function isDue(
  table: string,
  next: readonly Row[],
  live: readonly LiveObject[],
  { made, changePlan, partsPlan }: Given,
): boolean {
  const last = [...made.values()].filter((one) => one.table === table);
  const changes = [...changePlan.added.values()].includes(table) || changePlan.touched.has(table);
  const isPartNew = partsPlan.parts.some((one) => one.table === table && one.isNew);
  if (changes || isPartNew || last.length !== next.length) return true;
  return next.some(({ kind, name, isMade, definition }) => {
    const known = made.get(keyOf(kind, table, name));
    const current = live.find((one) => one.kind === kind && one.name === name);
    const expected = kind === "column" || kind === "table" ? definition : current?.definition;
    return known === undefined || known.isMade !== isMade || known.definition !== expected;
  });
}
