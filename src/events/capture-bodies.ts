import { mostReadBytes } from "../broker/message-limit.ts";
import { quoteName, quoteText } from "../db/names.ts";
import type { Definition, Field, Trigger } from "../mapping/definition.ts";
import { ownerFieldOf } from "../resources/access.ts";
import { foldsMoves, noteMoved, unlessMoved } from "./capture-moves.ts";
import { recordIdOf } from "./record-id-sql.ts";
import { snapshotOf } from "./snapshot-sql.ts";

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

/** Returns the body of the function that records the changes of rows. */
export function captureRowBody(definition: Definition): string {
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
 * transaction has committed since the snapshot. It checks every transaction that was running at the
 * snapshot, and every later assigned id.
 */
export function captureTruncateBody(definition: Definition): string {
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
  /** The old row of an update; written when the definition has `previous: true`. */
  readonly previous?: string;
}): string {
  const owner = ownerFieldOf(definition);
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
 * Omits the old row when the key has changed. It is another record, whose payloads `svc-admin
 * erase` finds by its own key. Also omits the old row when both rows together are too large for the
 * relay to read.
 */
function sameRecord({ keys }: Definition, snapshot: string, previous: string): string {
  const isSame = keys.map(
    ({ name }) => `${snapshot} -> ${quoteText(name)} = ${previous} -> ${quoteText(name)}`,
  );
  const areRead = `pg_column_size(${snapshot}) + pg_column_size(${previous}) <= ${mostReadBytes}`;
  return `CASE WHEN ${[...isSame, areRead].join(" AND ")} THEN ${previous} END`;
}

function declarationsOf(definition: Definition): string {
  const isFolded = foldsMoves(definition);
  return `${isFolded || definition.keepsPrevious ? "\n  svc_before jsonb;" : ""}${isFolded ? "\n  svc_moved bigint;" : ""}`;
}
