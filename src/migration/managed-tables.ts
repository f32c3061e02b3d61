import type { Client } from "pg";
import { judgeChanges, sentenceStart, type Deed, type Verdict, type WantedTable } from "./judge-changes.ts";
import {
  keyOf,
  readObjects,
  readRelations,
  readSequences,
  type LiveObject,
  type OwnedSequence,
} from "./live-objects.ts";
import type { LiveSchema } from "./live-tables.ts";
import { byKey, readMade, recordStatements } from "./made.ts";
import type { Step } from "./core-migrations.ts";
import { quoteName, tablesSchema } from "../db/names.ts";
import { nextRecord } from "./next-record.ts";
import { compareOwn } from "./own-changes.ts";
import type { ColumnPart, Statement } from "./statements.ts";
import { planValueChecks, type ValueCheck } from "./value-checks.ts";
import { findNarrowed, type ValueLimit } from "./value-limits.ts";

/** What brings the managed tables to the models, and what speaks against it. */
export interface TablesPlan {
  readonly steps: readonly Step[];
  /** What would be lost; each a sentence. */
  readonly losses: readonly string[];
  /** What the rows and objects that are there do not allow. */
  readonly impossible: readonly string[];
  /** What might fail, without loss. */
  readonly notes: readonly string[];
  /** What somebody else made or changed, and stays as it is. */
  readonly leftAlone: readonly string[];
}

/** The engine's warnings that tell of a possible failure and not of a loss: the transaction undoes what fails. Any other is a loss. */
const harmless = /^(A unique constraint covering|The primary key for)/;

/**
 * Plans the changes of the managed tables. What the service did not make, in them or beside them, is kept out of the engine's sight.
 *
 * @param wanted Tables that may be made and changed.
 * @param limits What the values of their columns must keep to.
 * @param checks What their enum columns may hold.
 */
export async function planTables({
  client,
  schemaText,
  live,
  wanted,
  limits,
  checks,
}: {
  readonly client: Client;
  readonly schemaText: string;
  readonly live: LiveSchema;
  readonly wanted: readonly WantedTable[];
  readonly limits: readonly ValueLimit[];
  readonly checks: readonly ValueCheck[];
}): Promise<TablesPlan> {
  const record = await readMade(client);
  const made = byKey(record);
  const managed = wanted.map(({ table }) => table);
  const objects = await readObjects(client, managed);
  const there = live.relations.map(({ name }) => name);
  const unrecorded = wanted.filter(
    ({ table, before }) =>
      before !== undefined && there.includes(table) && !made.has(keyOf("table", table, table)),
  );
  const valueChecks = planValueChecks({
    checks,
    objects,
    made,
    unrecorded: new Set(unrecorded.map(({ table }) => table)),
  });

  const change =
    managed.length === 0
      ? { statements: [], warnings: [], impossible: [], seen: new Set<string>() }
      : await compareOwn({
          client,
          schemaText,
          externalTables: there.filter((name) => !managed.includes(name)).map(qualified),
          externalEnums: live.enums.map(qualified),
          managed,
          objects,
          made,
        });
  const sequences = await readSequences(client, managed);
  const judged = wanted.map((one) => (unrecorded.includes(one) ? one : { ...one, before: undefined }));
  const verdict = judgeChanges({ statements: change.statements, wanted: judged, objects, made, sequences });
  const concerns = (text: string): boolean => !verdict.left.some((deed) => isAbout(text, deed));
  const warnings = change.warnings.filter(concerns);
  const narrowed = await findNarrowed({ client, limits, warnings });
  const next = nextRecord({ wanted: judged, objects, made, seen: change.seen, verdict, valueChecks });
  const gone = new Set(record.map(({ table }) => table).filter((table) => !there.includes(table)));
  for (const table of managed) gone.delete(table);

  const lost = warnings.filter((warning) => !harmless.test(warning) && !narrowed.settled.includes(warning));

  return {
    steps: [
      ...valueChecks.before,
      ...verdict.statements
        .map((statement) => repaired(statement, sequences))
        .map((sql) => ({ title: titleOf(sql), sql })),
      ...valueChecks.after,
      ...[...next.rows, ...[...gone].map((table) => [table, []] as const)].map(([table, rows]) => ({
        title: `${table}: note down what svc made`,
        sql: recordStatements(table, rows).join(";\n"),
      })),
    ],
    // A check that goes together with its column is said by both.
    losses: [...new Set([...verdict.losses, ...valueChecks.losses]), ...lost],
    impossible: [
      ...verdict.impossible,
      ...(await findTaken(client, verdict, objects)),
      ...valueChecks.impossible,
      ...change.impossible.filter(concerns),
      ...narrowed.impossible,
    ],
    notes: [
      ...warnings.filter((warning) => harmless.test(warning)),
      ...next.notes,
      ...inTheWay(wanted, objects),
    ],
    leftAlone: [...next.leftAlone.map((object) => shownAs(object)), ...changedByHand(verdict.left)],
  };
}

function shownAs(object: LiveObject): string {
  const { definition } = object;
  return `${sentenceStart(object)}${definition === "" ? "" : ` (${definition})`}: svc did not make it.`;
}

function changedByHand(left: readonly Deed[]): readonly string[] {
  const columns = left.filter(({ clause, object }) => clause.kind === "column" && object !== undefined);
  return [...new Set(columns.map(({ object }) => object))].flatMap((object) => {
    if (object === undefined) return [];
    const back = columns
      .filter((deed) => deed.table === object.table && deed.clause.name === object.name)
      .map(({ clause }) => clause.sql)
      .join(", ");
    return `${sentenceStart(object)} (${object.definition}): it was changed by hand, and the mapping file was not. What the file has: ${back}.`;
  });
}

/** The engine's sentences on a column of the table, by what is changed about it. */
const remarks: readonly { readonly part: ColumnPart; readonly pattern: RegExp }[] = [
  {
    part: "type",
    pattern: /^You are about to alter the column `([^`]+)` on the `([^`]+)` table, .* will be cast from /s,
  },
  { part: "type", pattern: /^The `([^`]+)` column on the `([^`]+)` table would be dropped and recreated/s },
  { part: "type", pattern: /^Changed the type of `([^`]+)` on the `([^`]+)` table/s },
  { part: "nullability", pattern: /^Made the column `([^`]+)` on table `([^`]+)` required/s },
];

/** Whether a sentence of the engine is about a clause that is not run. Others on the same column stay. */
function isAbout(text: string, { clause, table }: Deed): boolean {
  if (clause.kind !== "column") return false;
  return remarks.some(({ part, pattern }) => {
    const [, column, of] = pattern.exec(text) ?? [];
    return part === (clause.part ?? "type") && column === clause.name && of === table;
  });
}

/** What is to be made under a name that something else has. */
async function findTaken(
  client: Client,
  { added, dropped }: Verdict,
  objects: readonly LiveObject[],
): Promise<readonly string[]> {
  const names = [...added].flatMap(([key, table]) => {
    const [kind, , name] = JSON.parse(key) as [string, string, string];
    const isRefused = objects.some((one) => keyOf(one.kind, one.table, one.name) === key);
    return kind === "index" && !dropped.has(key) && !isRefused ? [{ name, table }] : [];
  });
  const relations = await readRelations(
    client,
    names.map(({ name }) => name),
  );
  return relations.map(({ name, what }) => {
    const table = names.find((one) => one.name === name)?.table ?? "";
    return `The index ${name} of the table ${table} cannot be made: svc did not make what has that name already, the ${what}. Give that another name.`;
  });
}

/** Columns of somebody else that no record of the API can have a value in. */
function inTheWay(wanted: readonly WantedTable[], objects: readonly LiveObject[]): readonly string[] {
  return objects
    .filter(({ kind, table, name, isNeeded }) => {
      const target = wanted.find((one) => one.table === table);
      const isMapped = target?.columns.some((one) => one.name === name);
      return kind === "column" && isNeeded && isMapped === false && target?.supportsCreate === true;
    })
    .map(
      (object) =>
        `${sentenceStart(object)} must have a value and has no default: no record can be created unless a field maps it, or it gets a default.`,
    );
}

function qualified(name: string): string {
  return `${tablesSchema}.${name}`;
}

/** The whole of the SQL in one line, except for a new table's columns. */
function titleOf(sql: string): string {
  const line = sql.replace(/\s+/g, " ");
  return /^CREATE TABLE (?:"(?:[^"]|"")*"\.?)+/.exec(line)?.[0] ?? line;
}

/**
 * The engine changes a counting Int key to BigInt by `SET DATA TYPE BIGSERIAL`, and back by `SERIAL`, which are no types that a column can be
 * changed to, and leave the end of its sequence where it was.
 */
function repaired({ sql, table, clauses }: Statement, sequences: readonly OwnedSequence[]): string {
  const changes = clauses.flatMap(({ name, sql: clause }) => {
    const serial = / SET DATA TYPE (BIG)?SERIAL$/.exec(clause);
    return serial === null ? [] : [{ name, type: serial[1] === undefined ? "integer" : "bigint" }];
  });
  const limits = changes.flatMap(({ name, type }) =>
    sequences
      .filter((one) => one.table === table && one.column === name)
      .map((one) => `ALTER SEQUENCE ${quoteName(one.name)} AS ${type}`),
  );
  const proper = changes.reduce(
    (given, { name, type }) =>
      given
        .replace(`ALTER COLUMN "${name}" SET DATA TYPE BIGSERIAL`, () => typed(name, type))
        .replace(`ALTER COLUMN "${name}" SET DATA TYPE SERIAL`, () => typed(name, type)),
    sql,
  );
  return [proper, ...limits].join(";\n");
}

function typed(column: string, type: string): string {
  return `ALTER COLUMN ${quoteName(column)} SET DATA TYPE ${type.toUpperCase()}`;
}
