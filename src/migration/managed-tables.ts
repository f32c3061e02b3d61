import type { Client } from "pg";
import { findBlocking } from "./blocking-objects.ts";
import {
  changesOfOthers,
  judgeChanges,
  sentenceStart,
  type ObjectChange,
  type ChangePlan,
  type WantedTable,
} from "./judge-changes.ts";
import {
  keyOf,
  keyOfObject,
  placeOf,
  readObjects,
  readRelations,
  readSequences,
  type LiveObject,
  type OwnedSequence,
} from "./live-objects.ts";
import { foreignEnds, type Ends } from "./foreign-ends.ts";
import type { LiveSchema } from "./live-tables.ts";
import { findMissingTypes } from "./missing-types.ts";
import { readMade, recordStatements, type MadeObject } from "./made.ts";
import type { Step } from "./core-migrations.ts";
import { findDuplicates } from "./duplicates.ts";
import { partsOfTable, quoteName, shortTable } from "../db/names.ts";
import { nextRecord } from "./next-made.ts";
import { findOrphans } from "./orphans.ts";
import { compareOwn } from "./own-changes.ts";
import { clausesOf, type ColumnPart, type Statement, type TableClause } from "./statements.ts";
import type { RowChecks, TableColumn } from "./row-checks.ts";
import { planParts, type PartsPlan } from "./planned-parts.ts";
import { indexPartOf, isTableIndex, type WantedIndex } from "./table-indexes.ts";
import { findUncastable } from "./uncastable.ts";
import { checkPartOf, findUnlisted, type ValueCheck } from "./value-checks.ts";
import { castWarning, findNarrowed, type ValueLimit } from "./value-limits.ts";
import { withWayOn } from "./ways-on.ts";

/** The steps that adapt the managed tables to the models, and the objections. */
export interface TablesPlan {
  readonly steps: readonly Step[];
  readonly ends: Ends;
  /** Tables whose captures must be made again, see `ChangePlan`. */
  readonly retyped: readonly string[];
  /** Data, indexes and constraints that would be lost. Refused unless losses are allowed. */
  readonly losses: readonly string[];
  /** Changes that the existing rows and objects do not allow. Always refused. */
  readonly impossible: readonly string[];
  /** Remarks for the operator, such as steps that may fail without loss. */
  readonly notes: readonly string[];
  /** Objects on the managed tables that others created or that were changed by hand. They stay. */
  readonly leftAlone: readonly string[];
}

/**
 * The engine's warnings of a possible failure, which the transaction undoes. Any other warning is a
 * loss.
 */
const harmless = /^(A unique constraint covering|The primary key for)/;

/**
 * Plans the changes of the managed tables. Hides from the engine all objects that the service did
 * not make.
 *
 * @param wanted Tables that may be created and changed.
 * @param limits Limits for the values of their columns.
 * @param checks Values that their enum columns may have.
 * @param indexes Indexes that the key `indexes` requires.
 */
export async function planTables({
  client,
  schemaText,
  live,
  wanted,
  limits,
  checks,
  indexes,
}: {
  readonly client: Client;
  readonly schemaText: string;
  readonly live: LiveSchema;
  readonly wanted: readonly WantedTable[];
  readonly limits: readonly ValueLimit[];
  readonly checks: readonly ValueCheck[];
  readonly indexes: readonly WantedIndex[];
}): Promise<TablesPlan> {
  // A policy that hides rows would make a full column look empty. With this setting, PostgreSQL
  // refuses to count instead.
  await client.query("SET LOCAL row_security = off");
  const record = await readMade(client);
  const made = new Map(record.map((one) => [keyOfObject(one), one]));
  const managed = wanted.map(({ table }) => table);
  const objects = await readObjects(client, managed);
  const there = live.relations.map(({ name }) => name);
  const isUnrecorded = ({ table, before }: WantedTable): boolean =>
    before !== undefined && there.includes(table) && !made.has(keyOf("table", table, table));
  const compared = objects.filter((object) => !isTableIndex(object));
  const change = await compareOwn({ client, schemaText, live, managed, objects: compared, made });
  const sequences = await readSequences(client, managed);
  const judged = wanted.map((one) => (isUnrecorded(one) ? one : { ...one, before: undefined }));
  const changePlan = judgeChanges({
    statements: change.statements,
    wanted: judged,
    objects,
    made,
    sequences,
    again: new Set(indexes.map(({ table, name }) => keyOf("index", table, name))),
  });
  const partsPlan = planParts({
    wanted: [...checks.map(checkPartOf), ...indexes.map(indexPartOf)],
    // An index that is dropped together with its column is made again.
    objects: objects.filter(
      (one) => one.what === "check" || (isTableIndex(one) && !changePlan.dropped.has(keyOfObject(one))),
    ),
    made,
    unrecorded: new Set(wanted.filter(isUnrecorded).map(({ table }) => table)),
  });
  const concerns = concernsOf(changePlan);
  const { statements } = changePlan;
  const warnings = change.warnings.filter(concerns);
  const unfit = await judgeRows({ client, statements, objects, warnings }, limits, changePlan);
  const next = nextRecord({ wanted: judged, objects, made, seen: change.seen, changePlan, partsPlan });
  const gone = await findGone(client, record, managed);

  return {
    steps: [
      ...schemaSteps(managed, live),
      ...changeSteps(changePlan, partsPlan, sequences),
      ...next.rows.map(([table, rows]) => recordStep(table, rows)),
      ...gone.map((table) => recordStep(table, [])),
    ],
    ends: await foreignEnds(client, statements),
    retyped: changePlan.retyped,
    losses: [...lossesOf({ changePlan, partsPlan, wanted: judged, objects, made }), ...unfit.losses],
    impossible: [
      ...changePlan.impossible,
      ...(await findTaken(client, changePlan, objects)),
      ...(await findBlocking(client, statements)),
      ...(await findMissingTypes(client, statements)),
      ...partsPlan.impossible,
      ...change.impossible.filter(concerns).map((text) => withWayOn(text, statements)),
      ...unfit.impossible,
      ...(await findUnlisted({ client, checks, plan: partsPlan, objects, dropped: changePlan.dropped })),
    ],
    notes: [...unfit.notes, ...next.notes, ...inTheWay(wanted, objects, changePlan)],
    leftAlone: [...next.leftAlone.map((object) => shownAs(object)), ...changedByHand(changePlan.left)],
  };
}

/** Checks the rows and casts of changes about which the engine, which reads neither, only warns. */
async function judgeRows(
  checks: RowChecks,
  limits: readonly ValueLimit[],
  changePlan: ChangePlan,
): Promise<Pick<TablesPlan, "impossible" | "losses" | "notes">> {
  const { client, statements } = checks;
  const narrowed = await findNarrowed({ ...checks, limits, changed: changedTypesOf(changePlan) });
  const doubled = await findDuplicates({ ...checks, castable: narrowed.castable });
  const orphans = await findOrphans(checks);
  const uncastable = await findUncastable(client, statements);
  const settled = [...narrowed.settled, ...doubled.settled];
  const open = checks.warnings.filter((one) => !settled.includes(one));
  const losses = open.filter((warning) => !harmless.test(warning));
  return {
    impossible: [...narrowed.impossible, ...doubled.impossible, ...orphans, ...uncastable],
    losses: [...narrowed.losses, ...losses.map((warning) => withWayOn(warning, statements))],
    notes: open.filter((warning) => harmless.test(warning)),
  };
}

/** Finds the tables on record that no longer exist, in any schema. */
async function findGone(
  client: Client,
  record: readonly MadeObject[],
  managed: readonly string[],
): Promise<readonly string[]> {
  const others = [...new Set(record.map(({ table }) => table))].filter((table) => !managed.includes(table));
  const there = await readRelations(client, others);
  return others.filter((table) => !there.some(({ name }) => name === table));
}

function schemaSteps(managed: readonly string[], { schemas }: LiveSchema): readonly Step[] {
  const wanted = new Set(managed.map((table) => partsOfTable(table).schema));
  return [...wanted]
    .filter((schema) => !schemas.includes(schema))
    .map((schema) => ({ title: `schema ${schema}`, sql: `CREATE SCHEMA ${quoteName(schema)}` }));
}

function lossesOf({
  changePlan,
  partsPlan,
  ...given
}: {
  readonly changePlan: ChangePlan;
  readonly partsPlan: PartsPlan;
} & Omit<Parameters<typeof changesOfOthers>[0], "touched">): readonly string[] {
  const checked = partsPlan.parts.filter(({ isNew }) => isNew).map(({ table }) => table);
  const others = changesOfOthers({ ...given, touched: [...changePlan.touched, ...checked] });
  // Both report a check that is dropped together with its column.
  return [...others, ...new Set([...changePlan.losses, ...partsPlan.losses])];
}

function changeSteps(
  { statements }: ChangePlan,
  { before, after }: PartsPlan,
  sequences: readonly OwnedSequence[],
): readonly Step[] {
  const changes = statements.map((statement) => repaired(statement, sequences));
  return [...before, ...changes.map((sql) => ({ title: titleOf(sql), sql })), ...after];
}

function recordStep(table: string, rows: Parameters<typeof recordStatements>[1]): Step {
  return { title: `${table}: record what svc made`, sql: recordStatements(table, rows).join(";\n") };
}

function shownAs(object: LiveObject): string {
  const { definition } = object;
  return `${sentenceStart(object)}${definition === "" ? "" : ` (${definition})`}: svc did not make it.`;
}

function changedByHand(left: readonly ObjectChange[]): readonly string[] {
  const columns = left.filter(({ clause, object }) => clause.kind === "column" && object !== undefined);
  return [...new Set(columns.map(({ object }) => object))].flatMap((object) => {
    if (object === undefined) return [];
    const back = columns
      .filter((change) => change.table === object.table && change.clause.name === object.name)
      .map(({ clause }) => clause.sql)
      .join(", ");
    return `${sentenceStart(object)} (${object.definition}): it was changed by hand, and the mapping file was not. What the file has: ${back}.`;
  });
}

/** The engine's sentences about a column, by the clause of the change. */
const remarks: readonly {
  readonly action: "alter" | "drop";
  readonly part?: ColumnPart;
  readonly pattern: RegExp;
}[] = [
  { action: "alter", part: "type", pattern: castWarning },
  { action: "drop", pattern: /^The `([^`]+)` column on the `([^`]+)` table would be dropped and recreated/s },
  { action: "drop", pattern: /^Changed the type of `([^`]+)` on the `([^`]+)` table/s },
  {
    action: "alter",
    part: "nullability",
    pattern: /^Made the column `([^`]+)` on table `([^`]+)` required/s,
  },
];

/**
 * Returns a filter of the engine's sentences. It drops sentences that are only about clauses that
 * do not run. The sentences name no schema, so one may be about two tables of which only one
 * changes. It then drops a sentence about NULLs, because PostgreSQL itself refuses them.
 */
function concernsOf(changePlan: ChangePlan): (text: string) => boolean {
  const changes = clausesOf(changePlan.statements).filter(({ clause }) => clause.part !== "nullability");
  return (text) =>
    !changePlan.left.some((change) => isAbout(text, change)) ||
    changes.some((change) => isAbout(text, change));
}

function changedTypesOf(changePlan: ChangePlan): readonly TableColumn[] {
  return clausesOf(changePlan.statements)
    .filter(({ clause }) => clause.part === "type")
    .map(({ clause, table }) => ({ table, column: clause.name }));
}

/** Returns whether a sentence of the engine may be about a change of a column. */
function isAbout(text: string, { clause, table }: TableClause): boolean {
  if (clause.kind !== "column") return false;
  return remarks.some(({ action, part, pattern }) => {
    if (action !== clause.action || part !== clause.part) return false;
    const [, column, of] = pattern.exec(text) ?? [];
    return column === clause.name && of === partsOfTable(table).name;
  });
}

async function findTaken(
  client: Client,
  { added }: ChangePlan,
  objects: readonly LiveObject[],
): Promise<readonly string[]> {
  const names = [...added].flatMap(([key, table]) => {
    const [kind, , name] = JSON.parse(key) as [string, string, string];
    // An existing object of this key was refused before, or is dropped first.
    const isThere = objects.some((one) => keyOfObject(one) === key);
    const place = shortTable(`${partsOfTable(table).schema}.${name}`);
    return kind === "index" && !isThere ? [{ name, place, table }] : [];
  });
  const places = names.map(({ place }) => place);
  return (await readRelations(client, places)).map(({ name: place, what }) => {
    const { name, table } = names.find((one) => one.place === place) ?? { name: place, table: "" };
    return `The index ${name} of the table ${table} cannot be made: the ${what}, which svc did not make, already has that name. Give that another name.`;
  });
}

/** Finds columns of others that must have a value but that the API cannot fill. */
function inTheWay(
  wanted: readonly WantedTable[],
  objects: readonly LiveObject[],
  { dropped }: ChangePlan,
): readonly string[] {
  return objects
    .filter((object) => {
      const { kind, table, name, isNeeded } = object;
      const target = wanted.find((one) => one.table === table);
      const isMapped = target?.columns.some((one) => one.name === name);
      const isHarmless = target?.supportsCreate !== true || dropped.has(keyOfObject(object));
      return kind === "column" && isNeeded && isMapped === false && !isHarmless;
    })
    .map(
      (object) =>
        `${sentenceStart(object)} must have a value and has no default: no record can be created unless a field maps it, or it gets a default.`,
    );
}

/** Returns the SQL as one line, without the columns of a new table. */
function titleOf(sql: string): string {
  const line = sql.replace(/\s+/g, " ");
  return /^CREATE TABLE (?:"(?:[^"]|"")*"\.?)+/.exec(line)?.[0] ?? line;
}

/**
 * Repairs the change of a counting Int key to BigInt, and back. The engine writes `SET DATA TYPE
 * BIGSERIAL` or `SERIAL`, to which no column can change. It also leaves the limit of the sequence.
 */
function repaired({ sql, table, clauses }: Statement, sequences: readonly OwnedSequence[]): string {
  const changes = clauses.flatMap(({ name, sql: clause, type }) =>
    type?.endsWith("SERIAL") === true
      ? [{ name, clause, type: type === "SERIAL" ? "INTEGER" : "BIGINT" }]
      : [],
  );
  const limits = changes.flatMap(({ name, type }) =>
    sequences
      .filter((one) => one.table === table && one.column === name)
      .map((one) => `ALTER SEQUENCE ${placeOf(one)} AS ${type}`),
  );
  const proper = changes.reduce(
    (given, { clause, type }) => given.replace(clause, () => clause.replace(/(?:BIG)?SERIAL$/, type)),
    sql,
  );
  return [proper, ...limits].join(";\n");
}
