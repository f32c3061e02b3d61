import { partsOfTable, quoteName } from "../db/names.ts";
import { keyOf, keyOfObject, type LiveObject, type OwnedSequence } from "./live-objects.ts";
import { type ColumnWish, isSame, type MadeObject } from "./made.ts";
import { type Clause, type Statement, withClauses } from "./statements.ts";

/** A table that the mapping files require. */
export interface WantedTable {
  readonly table: string;
  readonly columns: readonly { readonly name: string; readonly wish: ColumnWish }[];
  /** Whether the API creates records in it. */
  readonly supportsCreate: boolean;
  /**
   * For a table from a version that kept no record of its parts: whether its mapping file changed
   * since the last migration. Undefined for every other table.
   */
  readonly before: "same" | "changed" | undefined;
}

/** The part of the engine's changes that may be made. */
export interface ChangePlan {
  readonly statements: readonly Statement[];
  /** Keys (`keyOf`) of the objects that are dropped, directly or together with a column. */
  readonly dropped: ReadonlySet<string>;
  /** The table of each added object, by `keyOf`. */
  readonly added: ReadonlyMap<string, string>;
  /** The tables that any change touches. */
  readonly touched: ReadonlySet<string>;
  /** The tables in which a column gets another type, or is dropped and added. */
  readonly retyped: readonly string[];
  readonly losses: readonly string[];
  readonly impossible: readonly string[];
  /** The clauses that would undo a change by hand. */
  readonly left: readonly ObjectChange[];
}

/** A clause and the object that it changes. */
export interface ObjectChange {
  readonly statement: Statement;
  readonly clause: Clause;
  readonly table: string;
  readonly key: string;
  readonly object: LiveObject | undefined;
}

/** Origin of an object according to the record. */
type Origin = "made" | "found" | "remade" | "theirs";

/** The changes of the schema engine, and the data for the decisions on them. */
interface Given {
  readonly statements: readonly Statement[];
  readonly wanted: readonly WantedTable[];
  /** Objects of the managed tables. */
  readonly objects: readonly LiveObject[];
  readonly made: ReadonlyMap<string, MadeObject>;
  /** Sequences that belong to their columns. */
  readonly sequences: readonly OwnedSequence[];
  /** Keys (`keyOf`) of the objects that are recreated when they are dropped with a column. */
  readonly again: ReadonlySet<string>;
}

/**
 * Decides on the changes of the schema engine. Pure.
 *
 * A change of a column by hand stays unless the mapping file has changed its definition of the
 * column. Of indexes and constraints, only those of the service are dropped or replaced.
 */
export function judgeChanges(given: Given): ChangePlan {
  const { statements, wanted, objects, made, again } = given;
  const live = new Map(objects.map((object) => [keyOfObject(object), object]));
  const changes = statements.flatMap((statement) =>
    statement.clauses.map((clause) => objectChangeOf(statement, clause, live, objects)),
  );
  const tables = new Map(wanted.map((one) => [one.table, one]));
  const left = leftOf(changes, tables, given);
  const kept = changes.filter((change) => !left.includes(change));
  const originOf = (object: LiveObject): Origin => originIn(object, tables, made);

  const added = new Map(
    kept.filter(({ clause }) => clause.action === "add").map(({ key, table }) => [key, table]),
  );
  const named = new Set(kept.filter(({ clause }) => clause.action === "drop").map(({ key }) => key));
  const droppedColumns = kept.filter(({ clause }) => clause.action === "drop" && clause.kind === "column");
  const along = objects.filter(
    (object) =>
      object.kind !== "column" &&
      !named.has(keyOfObject(object)) &&
      droppedColumns.some((one) => one.table === object.table && object.columns.includes(one.clause.name)),
  );
  const dropped = new Set([...named, ...along.map(keyOfObject)]);
  const renamed = new Set(kept.filter(({ clause }) => renaming.test(clause.sql)).map(({ key }) => key));
  const gone = objects.filter((object) => {
    const key = keyOfObject(object);
    const stays = added.has(key) || again.has(key) || renamed.has(key);
    return object.kind !== "column" && dropped.has(key) && !stays;
  });
  return {
    statements: statements.flatMap(
      (statement) =>
        withClauses(
          statement,
          kept.filter((change) => change.statement === statement).map(({ clause }) => clause),
        ) ?? [],
    ),
    dropped,
    added,
    touched: new Set(kept.map(({ table }) => table)),
    retyped: kept.filter(isRetyped).map(({ table }) => table),
    left,
    losses: [
      ...gone.map((object) => lossOf(object, originOf(object) === "made")),
      ...along
        .filter((object) => !gone.includes(object) && originOf(object) !== "made")
        .map((object) => lossOf(object, false)),
    ],
    impossible: [
      ...new Set(kept.flatMap((change) => refusalOf(change, kept, dropped, originOf) ?? [])),
      ...secondKeys(kept, dropped, objects),
    ],
  };
}

function isRetyped({ clause: { action, kind, part }, object }: ObjectChange): boolean {
  return kind === "column" && (part === "type" || (action === "add" && object !== undefined));
}

/** Changes that the engine makes to an index or a foreign key whose columns were renamed. */
const renaming = /^(?:RENAME CONSTRAINT|ALTER INDEX) /;

function objectChangeOf(
  statement: Statement,
  clause: Clause,
  live: ReadonlyMap<string, LiveObject>,
  objects: readonly LiveObject[],
): ObjectChange {
  // Names of indexes are unique in a schema, and their statements name no table.
  const table =
    statement.table ??
    objects.find(
      ({ kind, name, table: of }) =>
        kind === "index" &&
        // The new name of a renamed index belongs to no table yet.
        statement.clauses.some((one) => one.name === name) &&
        partsOfTable(of).schema === statement.schema,
    )?.table ??
    "";
  const dropped = clause.action === "drop" ? clause.name : /^RENAME CONSTRAINT "(.+?)"/.exec(clause.sql)?.[1];
  const isIndex =
    clause.kind === "constraint" && dropped !== undefined && live.has(keyOf("index", table, dropped));
  const kind = clause.kind === "sequence" ? "other" : clause.kind;
  const key = keyOf(isIndex ? "index" : kind, table, clause.name);
  return { statement, clause, table, key, object: live.get(key) };
}

/** Returns the changes that are left out, because they would undo a change by hand. */
function leftOf(
  changes: readonly ObjectChange[],
  tables: ReadonlyMap<string, WantedTable>,
  { objects, made, sequences }: Given,
): readonly ObjectChange[] {
  const isAskedBefore = ({ clause, table, key, object }: ObjectChange): boolean => {
    const wanted = tables.get(table);
    const wish = wanted?.columns.find(({ name }) => name === clause.name)?.wish;
    if (clause.kind !== "column" || object === undefined || wish === undefined) return false;
    const known = made.get(key);
    const last =
      known === undefined ? wanted?.before === "same" && wish : (JSON.parse(known.definition) as ColumnWish);
    const part = clause.part ?? "type";
    if (last === false || last[part] !== wish[part]) return false;
    // A list may be NULL in the database, even when the file says "required".
    return part !== "nullability" || isList(last) === isList(wish);
  };
  const columns = changes.filter(isAskedBefore);
  // The columns whose indexes and constraints the engine drops and recreates together with the
  // column.
  const whole = columns.filter(({ clause }) => clause.action === "drop");
  const parts = changes.filter(
    ({ clause, table, object }) =>
      clause.kind !== "column" &&
      object !== undefined &&
      whole.some((one) => one.table === table && object.columns.includes(one.clause.name)),
  );
  const counters = changes.filter(({ clause, table }) => {
    if (clause.kind !== "sequence") return false;
    if (clause.action !== "drop") {
      // A sequence is created and then assigned to its column: `ALTER SEQUENCE a_id_seq OWNED BY
      // "a"."id"`.
      const giving = changes.find((one) => one.clause.action === "other" && one.clause.name === clause.name);
      return columns.some(
        (one) =>
          giving?.clause.sql.endsWith(` OWNED BY "${one.table.replace(".", `"."`)}"."${one.clause.name}"`) ===
          true,
      );
    }
    const owner = sequences.find((one) => one.name === clause.name && one.table === table);
    const ownerKey = owner && keyOf("column", owner.table, owner.column);
    const known = ownerKey === undefined ? undefined : made.get(ownerKey);
    const isOurs = known?.isMade ?? (owner !== undefined && tables.get(owner.table)?.before !== undefined);
    return !isOurs || columns.some(({ key }) => key === ownerKey);
  });
  // A table has one primary key, which serves under any name when its columns are the same.
  const keys = changes.filter(({ clause, table }) => {
    const asked = /^ADD CONSTRAINT "[^"]+" PRIMARY KEY \((.+)\)$/.exec(clause.sql)?.[1];
    return objects.some(
      (one) =>
        one.table === table &&
        one.what === "primary key" &&
        one.isPlain &&
        one.name !== clause.name &&
        one.columns.map((name) => `"${name}"`).join(",") === asked,
    );
  });
  return [...columns, ...parts, ...counters, ...keys];
}

function isList({ type }: ColumnWish): boolean {
  return type.includes("[]");
}

function originIn(
  object: LiveObject,
  tables: ReadonlyMap<string, WantedTable>,
  made: ReadonlyMap<string, MadeObject>,
): Origin {
  const known = made.get(keyOfObject(object));
  if (known !== undefined) return isSame(object, known) ? (known.isMade ? "made" : "found") : "remade";
  const table = tables.get(object.table);
  const isNamed =
    object.kind !== "column" || table?.columns.some(({ name }) => name === object.name) === true;
  return table?.before === "changed" && isNamed ? "made" : "theirs";
}

function refusalOf(
  change: ObjectChange,
  kept: readonly ObjectChange[],
  dropped: ReadonlySet<string>,
  originOf: (object: LiveObject) => Origin,
): string | undefined {
  const { clause, table, key, object } = change;
  if (object === undefined) return undefined;
  const origin = originOf(object);
  const isFine =
    clause.action === "add"
      ? dropped.has(key)
      : origin === "made" || (origin === "found" && clause.action === "alter");
  if (isFine) return undefined;
  // A later statement recreates the dropped object, in the form of the file.
  const again = kept.find((one) => one !== change && one.key === key && one.clause.action === "add");
  const sql = [change, ...(again === undefined ? [] : [again])].map(sqlByHand).join("; ");
  return (
    `${sentenceStart(object)} is ${object.definition}, not as the mapping file has it, and svc did not make it${origin === "remade" ? " (somebody made it again)" : ""}: ` +
    `it is not touched. Give it another name, change it yourself (the mapping file asks for: ${sql}), or change the mapping file of ${table}.`
  );
}

/** Returns the SQL of a change for a session in any time zone. */
function sqlByHand({ statement, clause, object }: ObjectChange): string {
  const sql = statement.head + clause.sql;
  const isMoment = /^TIMESTAMPTZ\(\d\)$/.test(clause.type ?? "");
  return isMoment && /^timestamp(?:\(\d\))? without/.test(object?.definition ?? "")
    ? `${sql} USING ${quoteName(clause.name)} AT TIME ZONE 'UTC'`
    : sql;
}

function secondKeys(
  kept: readonly ObjectChange[],
  dropped: ReadonlySet<string>,
  objects: readonly LiveObject[],
): readonly string[] {
  const asked = kept.filter(
    ({ clause, object }) => object === undefined && clause.sql.includes(" PRIMARY KEY ("),
  );
  return objects
    .filter(
      (object) =>
        object.what === "primary key" &&
        !dropped.has(keyOfObject(object)) &&
        asked.some((change) => change.table === object.table),
    )
    .map(
      (object) =>
        `${sentenceStart(object)} is ${object.definition}, not as the mapping file has it, and svc did not make it: it is not touched. Change it yourself, or the mapping file.`,
    );
}

/**
 * Returns a sentence for each table of other owners that would be changed.
 *
 * @param touched The tables that any change touches.
 */
export function changesOfOthers({
  touched,
  wanted,
  objects,
  made,
}: Pick<Given, "wanted" | "objects" | "made"> & { readonly touched: readonly string[] }): readonly string[] {
  const isOfOthers = (table: string): boolean =>
    wanted.find((one) => one.table === table)?.before === undefined &&
    made.get(keyOf("table", table, table))?.isMade !== true &&
    objects.some((object) => object.table === table);
  return [...new Set(touched)]
    .filter(isOfOthers)
    .map(
      (table) =>
        `The table ${table} exists and was not made by this service, which would change it. Say "managed: false" in its mapping file to leave it as it is.`,
    );
}

/** Returns the sentence about the loss of an index or a constraint. */
export function lossOf(object: LiveObject, isMade: boolean): string {
  const what = `${sentenceStart(object)} (${object.definition})`;
  // An index that is not unique only makes queries faster, and guarantees nothing.
  const more = object.what === "index" ? "" : ", with the guarantee that it gives";
  return isMade
    ? `${what} is no longer in the mapping file, and would be dropped${more}.`
    : `${what} was not made by svc, and would go together with a column that is dropped.`;
}

/** Returns the start of a sentence: `The unique index a of the table b`. */
export function sentenceStart({ what, name, table }: LiveObject): string {
  return `The ${what} ${name} of the table ${table}`;
}
