import { createHash } from "node:crypto";
import { dollarQuoted, fittingName, quoteName, quoteTable, quoteText } from "../db/names.ts";
import type { Definition, Field, Trigger } from "../mapping/definition.ts";
import { createMoves, dropMoves, foldsMoves, noteMoved, unlessMoved } from "./capture-moves.ts";
import { recordIdOf } from "./record-id-sql.ts";
import { snapshotOf } from "./snapshot-sql.ts";

/**
 * SQL that records the changes of one resource in `svc.events`, in the writer's own transaction.
 */
export interface Capture {
  /** Changes when the statements change. */
  readonly hash: string;
  /**
   * Statements that replace what is installed for the resource. Without triggers they only remove
   * it.
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
 * the database. An UPDATE that leaves every mapped column as it was makes no event. Neither does a
 * session with `session_replication_role = replica` (a restore, a logical replica).
 */
export function captureOf(definition: Definition): Capture {
  const moves = foldsMoves(definition) ? createMoves(definition) : [];
  const made = [...removeFunctions(definition), ...createStatements(definition), ...moves];
  const hash = createHash("sha256").update(made.join(";\n")).digest("hex");
  return { hash, install: [...dropMoves(definition), ...made] };
}

/**
 * Returns the statements that remove a resource's capture from its table. No-ops without a capture
 * or a table.
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
  /** Not quoted, unlike the name of the function. */
  readonly name: string;
  readonly when: string;
  readonly forEach: "ROW" | "STATEMENT";
  readonly call: string;
  readonly body: string;
  /** Settings of this function, in addition to those of both. */
  readonly settings: string;
  /** SQL condition: whether a table below needs a trigger of its own. */
  readonly isNeededBelow: string;
}

function triggersOf(definition: Definition): readonly CaptureTrigger[] {
  const { name, triggers } = definition;
  if (triggers.length === 0) return [];
  const ofRows: CaptureTrigger = {
    name: fittingName(`svc_capture_${name}`),
    when: `AFTER ${triggers.map((trigger) => operations[trigger]).join(" OR ")}`,
    forEach: "ROW",
    call: rowFunction(name),
    body: rowBody(definition),
    settings: styleOf(definition),
    isNeededBelow: "NOT is_partition",
  };
  if (!triggers.includes("on_delete")) return [ofRows];
  const ofTruncate: CaptureTrigger = {
    name: fittingName(`svc_capture_${name}`, "_truncate"),
    when: "BEFORE TRUNCATE",
    forEach: "STATEMENT",
    call: truncateFunction(name),
    body: truncateBody(definition),
    // TRUNCATE ignores row policies, so reading the rows must ignore them too, or fail.
    settings: ` SET row_security = off${styleOf(definition)}`,
    // PostgreSQL 15 has no TRUNCATE triggers on foreign tables.
    isNeededBelow: "kind <> 'f'",
  };
  return [ofRows, ofTruncate];
}

/**
 * Durations, native types and days in ids have texts of several styles, of which the API shows one.
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
 * Returns the statement that adds the missing triggers to every table below the resource's, however
 * deep. PostgreSQL itself adds row triggers to partitions, later ones too. It adds no TRUNCATE
 * triggers to them, and neither kind to children by INHERITS.
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
  return `DO ${dollarQuoted(`
DECLARE
  part regclass;
  is_partition boolean;
  kind "char";
BEGIN
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

/**
 * First statements of both functions. Two IFs, because a single condition would run its query for
 * each row of any table.
 */
const silentUnlessPart = `IF TG_NARGS > 0 THEN
    IF NOT EXISTS (
      WITH RECURSIVE above (relid) AS (SELECT TG_RELID UNION SELECT inhparent FROM pg_inherits JOIN above ON inhrelid = relid)
      SELECT FROM pg_trigger JOIN above ON tgrelid = relid WHERE tgname = TG_NAME AND tgnargs = 0
    ) THEN
      RETURN NULL;
    END IF;
  END IF;`;

function rowBody(definition: Definition): string {
  const [after, before] = [snapshotOf(definition, "NEW"), snapshotOf(definition, "OLD")];
  const branches: Readonly<Record<Trigger, string>> = {
    on_create: `WHEN 'INSERT' THEN
    ${unlessMoved(definition, {
      create: insertOf({ definition, trigger: "on_create", row: "NEW", snapshot: after }),
      update: insertOf({
        definition,
        trigger: "on_update",
        row: "NEW",
        snapshot: "svc_after",
        previous: "svc_before",
      }),
      after,
    })}`,
    on_update: `WHEN 'UPDATE' THEN
    svc_after := ${after};${definition.keepsPrevious ? `\n    svc_before := ${before};` : ""}
    IF svc_after IS DISTINCT FROM ${definition.keepsPrevious ? "svc_before" : before} THEN
      ${insertOf({ definition, trigger: "on_update", row: "NEW", snapshot: "svc_after", previous: "svc_before" })};
    END IF;`,
    on_delete: `WHEN 'DELETE' THEN
    ${insertOf({ definition, trigger: "on_delete", row: "OLD", snapshot: before })};${noteMoved(definition)}`,
  };
  return `
DECLARE
  svc_after jsonb;${declarationsOf(definition)}
BEGIN
  ${silentUnlessPart}
  CASE TG_OP
  ${definition.triggers.map((trigger) => branches[trigger]).join("\n  ")}
  END CASE;
  RETURN NULL;
END
`;
}

/**
 * Returns the body for TRUNCATE, which fires the trigger of each table that it empties, partitions
 * included. Each trigger records its own rows. A partitioned table also records the rows of
 * partitions without a trigger.
 *
 * TRUNCATE also removes rows that a REPEATABLE READ or SERIALIZABLE transaction cannot see: those
 * committed after its snapshot. No query can find them, so the function refuses TRUNCATE when any
 * transaction has committed since the snapshot. It looks at every transaction that was running
 * then, and at every later id that has been assigned.
 */
function truncateBody(definition: Definition): string {
  const insert = insertOf({
    definition,
    trigger: "on_delete",
    row: "svc_row",
    snapshot: snapshotOf(definition, "svc_row"),
  });
  return `
DECLARE
  svc_above oid[] := ARRAY(SELECT relid FROM pg_partition_ancestors(TG_RELID));
  svc_part regclass;
  svc_seen pg_snapshot := pg_current_snapshot();
  svc_xid numeric := pg_snapshot_xmax(svc_seen)::text;
  svc_is_late boolean;
BEGIN
  ${silentUnlessPart}
  IF current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
    svc_is_late := EXISTS (SELECT FROM pg_snapshot_xip(svc_seen) AS xid WHERE pg_xact_status(xid) = 'committed');
    BEGIN
      WHILE NOT svc_is_late LOOP
        svc_is_late := coalesce(pg_xact_status(svc_xid::text::xid8) = 'committed', false);
        svc_xid := svc_xid + 1;
      END LOOP;
    EXCEPTION WHEN invalid_parameter_value THEN
      -- A number that no transaction has yet.
    END;
    IF svc_is_late THEN
      RAISE EXCEPTION USING ERRCODE = 'serialization_failure',
        MESSAGE = concat('could not serialize access: TRUNCATE of ', TG_RELID::regclass, ' may remove rows that were committed after the snapshot of this transaction, and no event would tell of them'),
        HINT = 'Truncate in READ COMMITTED, or make LOCK TABLE ... IN ACCESS EXCLUSIVE MODE the first statement of the transaction, or use DELETE.';
    END IF;
  END IF;
  FOR svc_part IN
    SELECT TG_RELID UNION
    SELECT part.relid FROM pg_partition_tree(TG_RELID) AS part WHERE isleaf AND NOT EXISTS (
      SELECT FROM pg_partition_ancestors(part.relid) AS nearer JOIN pg_trigger ON tgrelid = nearer.relid
      WHERE tgname = TG_NAME AND tgenabled IN ('O', 'A') AND nearer.relid <> ALL (svc_above)
    )
  LOOP
    EXECUTE ${quoteText(`${insert} FROM ONLY `)} || svc_part || ' AS svc_row';
  END LOOP;
  RETURN NULL;
END
`;
}

function insertOf({
  definition,
  trigger,
  row,
  snapshot,
  previous,
}: {
  readonly definition: Definition;
  readonly trigger: Trigger;
  readonly row: string;
  readonly snapshot: string;
  /** The old row of an update; written where the definition asks for it. */
  readonly previous?: string;
}): string {
  const owner = definition.fields.find(({ name }) => name === definition.ownerColumn);
  const asText = (field: Field): string => `${row}.${quoteName(field.column)}::text`;
  const values = [
    quoteText(definition.name),
    quoteText(trigger),
    recordIdOf(definition, row),
    owner === undefined ? "NULL" : asText(owner),
    snapshot,
  ];
  if (previous === undefined || !definition.keepsPrevious)
    return `INSERT INTO svc.events (resource, trigger, record_id, owner_id, snapshot) SELECT ${values.join(", ")}`;
  const kept = sameRecord(definition, snapshot, previous);
  return `INSERT INTO svc.events (resource, trigger, record_id, owner_id, snapshot, previous) SELECT ${[...values, kept].join(", ")}`;
}

/**
 * Leaves out the old row where the key has changed: it is another record, whose payloads
 * `svc-admin erase` finds by its own key.
 */
function sameRecord({ keys }: Definition, snapshot: string, previous: string): string {
  const isSame = keys.map(
    ({ name }) => `${snapshot} -> ${quoteText(name)} = ${previous} -> ${quoteText(name)}`,
  );
  return `CASE WHEN ${isSame.join(" AND ")} THEN ${previous} END`;
}

function declarationsOf(definition: Definition): string {
  const isFolded = foldsMoves(definition);
  return `${isFolded || definition.keepsPrevious ? "\n  svc_before jsonb;" : ""}${isFolded ? "\n  svc_moved bigint;" : ""}`;
}
