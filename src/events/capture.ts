import { createHash } from "node:crypto";
import { dollarQuoted, fittingName, quoteName, quoteTable, quoteText } from "../db/names.ts";
import type { Definition, Trigger } from "../mapping/definition.ts";
import { captureRowBody, captureTruncateBody } from "./capture-bodies.ts";
import { createMoves, dropMoves, foldsMoves } from "./capture-moves.ts";

/**
 * SQL statements that install the capture of one resource. The capture records changes in
 * `svc.events`, in the writer's own transaction.
 */
interface Capture {
  /** Hash of the statements. */
  readonly hash: string;
  /**
   * Statements that replace the installed capture of the resource. For a resource without triggers
   * they only remove it.
   */
  readonly install: readonly string[];
}

const operations: Readonly<Record<Trigger, string>> = {
  on_create: "INSERT",
  on_update: "UPDATE",
  on_delete: "DELETE",
};

/**
 * Returns the names of the triggers that a resource's table, and every table below it, must have:
 * one for rows, and one for TRUNCATE when deletes are captured.
 */
export function captureTriggerNames(definition: Definition): readonly string[] {
  return triggersOf(definition).map(({ name }) => name);
}

/**
 * Returns the statements that install a resource's capture.
 *
 * The functions run with the rights of the role that migrates: writers of the table need no rights
 * on `svc`. Their search path is fixed. They send no NOTIFY, which takes a lock over all commits of
 * the database. An UPDATE that changes no mapped column makes no event. A session with
 * `session_replication_role = replica` (a restore, a logical replica) makes no events.
 */
export function captureOf(definition: Definition): Capture {
  const moves = foldsMoves(definition) ? createMoves(definition) : [];
  const made = [...removeFunctions(definition), ...createStatements(definition), ...moves];
  const hash = createHash("sha256").update(made.join(";\n")).digest("hex");
  return { hash, install: [...dropMoves(definition), ...made] };
}

/**
 * Returns the statements that remove a resource's capture from its table. They are no-ops without a
 * capture or a table.
 */
export function removeCapture({ name }: { readonly name: string }): readonly string[] {
  return [...dropMoves({ name }), ...removeFunctions({ name })];
}

function removeFunctions({ name }: { readonly name: string }): readonly string[] {
  // CASCADE drops only the triggers: nothing else can depend on a trigger function.
  return [rowFunction(name), truncateFunction(name)].map((call) => `DROP FUNCTION IF EXISTS ${call} CASCADE`);
}

function rowFunction(resource: string): string {
  return `svc.${quoteName(fittingName(`capture_${resource}`))}`;
}

function truncateFunction(resource: string): string {
  return `svc.${quoteName(fittingName(`truncate_${resource}`))}`;
}

interface CaptureTrigger {
  /** Name of the trigger; not quoted, unlike that of the function. */
  readonly name: string;
  readonly when: string;
  readonly forEach: "ROW" | "STATEMENT";
  readonly call: string;
  readonly body: string;
  /** Settings of this function, in addition to the common settings. */
  readonly settings: string;
  /** SQL condition for a child table that needs its own trigger. */
  readonly isNeededBelow: string;
}

function triggersOf(definition: Definition): readonly CaptureTrigger[] {
  const { name, triggers } = definition;
  if (triggers.length === 0) return [];
  const ofRows: CaptureTrigger = {
    // PostgreSQL fires triggers in the order of their names. After one that changes the same row,
    // the newer change would be captured first, with the earlier time.
    name: fittingName(`0_svc_capture_${name}`),
    when: `AFTER ${triggers.map((trigger) => operations[trigger]).join(" OR ")}`,
    forEach: "ROW",
    call: rowFunction(name),
    body: captureRowBody(definition),
    settings: styleOf(definition),
    isNeededBelow: "NOT is_partition",
  };
  if (!triggers.includes("on_delete")) return [ofRows];
  const ofTruncate: CaptureTrigger = {
    name: fittingName(`svc_capture_${name}`, "_truncate"),
    when: "BEFORE TRUNCATE",
    forEach: "STATEMENT",
    call: truncateFunction(name),
    body: captureTruncateBody(definition),
    // TRUNCATE ignores row policies, so reading the rows must ignore them too, or fail.
    settings: ` SET row_security = off${styleOf(definition)}`,
    // PostgreSQL 15 has no TRUNCATE triggers on foreign tables.
    isNeededBelow: "kind <> 'f'",
  };
  return [ofRows, ofTruncate];
}

/**
 * Returns the settings that fix text styles. Durations, native types and days in ids have several
 * text styles, and the API shows only one.
 */
function styleOf({ fields, keys }: Definition): string {
  const isStyled =
    fields.some(({ type, native }) => type === "Interval" || native !== undefined) ||
    keys.some(({ type }) => type === "Date" || type === "Instant");
  return isStyled ? ` SET "IntervalStyle" = 'iso_8601' SET "DateStyle" = 'ISO'` : "";
}

function createStatements(definition: Definition): readonly string[] {
  const triggers = triggersOf(definition);
  if (triggers.length === 0) return [];
  const table = quoteTable(definition.table);
  return [
    ...triggers.flatMap(({ name, when, forEach, call, body, settings }) => [
      `CREATE FUNCTION ${call}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER\n` +
        `SET search_path = pg_catalog, pg_temp SET "TimeZone" = 'UTC' SET extra_float_digits = 1${settings}\n` +
        `AS ${dollarQuoted(body)}`,
      `REVOKE ALL ON FUNCTION ${call}() FROM PUBLIC`,
      `CREATE TRIGGER ${quoteName(name)} ${when} ON ${table} FOR EACH ${forEach} EXECUTE FUNCTION ${call}()`,
    ]),
    captureBelow(definition),
  ];
}

/**
 * Returns the PL/pgSQL that lets the owners of partitioned tables add partitions. PostgreSQL gives
 * each one the row trigger, and asks for EXECUTE on its function.
 */
function grantToOwners({ name, table }: Definition): string {
  return `
  FOR owner IN
    SELECT DISTINCT pg_catalog.pg_get_userbyid(relowner)
    FROM pg_catalog.pg_partition_tree(${quoteText(quoteTable(table))}::regclass) AS tree JOIN pg_catalog.pg_class ON oid = tree.relid
    WHERE relkind = 'p'
  LOOP
    EXECUTE pg_catalog.format('GRANT EXECUTE ON FUNCTION %s() TO %I', ${quoteText(rowFunction(name))}, owner);
  END LOOP;`;
}

/**
 * Returns the statement that adds missing triggers to every descendant of the resource's table, and
 * lets owners add partitions.
 * PostgreSQL itself adds row triggers to partitions, including later ones. It adds no TRUNCATE
 * triggers to partitions, and no triggers to children by INHERITS.
 *
 * The argument `below` marks these triggers: they do nothing once their table is detached.
 */
export function captureBelow(definition: Definition): string {
  const creating = triggersOf(definition).map(
    ({ name, when, forEach, call, isNeededBelow }) => `
    IF ${isNeededBelow} AND NOT EXISTS (SELECT FROM pg_catalog.pg_trigger WHERE tgrelid = part AND tgname = ${quoteText(name)}) THEN
      EXECUTE pg_catalog.format('CREATE TRIGGER %I ${when} ON %s FOR EACH ${forEach} EXECUTE FUNCTION %s(''below'')', ${quoteText(name)}, part, ${quoteText(call)});
    END IF;`,
  );
  // The tables of the service have no partitions.
  const { variable, grants } = definition.isManaged
    ? { variable: "", grants: "" }
    : { variable: "\n  owner name;", grants: grantToOwners(definition) };
  return `DO ${dollarQuoted(`
DECLARE
  part regclass;
  is_partition boolean;
  kind "char";${variable}
BEGIN${grants}
  FOR part, is_partition, kind IN
    WITH RECURSIVE below (relid) AS (
      SELECT inhrelid FROM pg_catalog.pg_inherits WHERE inhparent = ${quoteText(quoteTable(definition.table))}::regclass
      UNION SELECT inhrelid FROM pg_catalog.pg_inherits JOIN below ON inhparent = relid
    )
    SELECT oid, relispartition, relkind FROM below JOIN pg_catalog.pg_class ON oid = relid ORDER BY oid
  LOOP${creating.join("")}
  END LOOP;
END
`)}`;
}
