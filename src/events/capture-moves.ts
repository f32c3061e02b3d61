import { dollarQuoted, fittingName, quoteName, quoteTable, quoteText } from "../db/names.ts";
import type { Definition } from "../mapping/definition.ts";
import { recordIdOf } from "./record-id-sql.ts";

/**
 * Folds the two halves of an UPDATE that moves a row to another partition. PostgreSQL fires the
 * triggers of a DELETE and right after them those of an INSERT.
 *
 * A partitioned table notes in a setting which statement is under way. An INSERT within an UPDATE
 * removes the event of the DELETE before it, and records a change. Only of the same record: one
 * statement may also delete a row and insert another. A writer who forges the setting merges a
 * deletion and a creation of its own transaction. No event is lost.
 */
export function foldsMoves({ isManaged, triggers }: Definition): boolean {
  // The tables of the service have no partitions.
  return !isManaged && triggers.length === 3;
}

function moveFunction(resource: string): string {
  return `svc.${quoteName(fittingName(`move_${resource}`))}`;
}

/** Returns the name of the setting: the statements under way, `u` an UPDATE, and `x` a DELETE. */
function settingOf(resource: string): string {
  return quoteText(`svc.under_way_${Buffer.from(resource).toString("hex")}`);
}

/** Returns the name of another setting: the event of the last DELETE within such an UPDATE. */
function movedSettingOf(resource: string): string {
  return quoteText(`svc.moved_${Buffer.from(resource).toString("hex")}`);
}

/** Writes the condition that an UPDATE of a partitioned table is under way, and no DELETE. */
function isUnderWay(resource: string): string {
  return `current_setting(${settingOf(resource)}, true) LIKE '%u'`;
}

/** Returns the statements that remove what `createMoves` installs; no-ops without it. */
export function dropMoves({ name }: { readonly name: string }): readonly string[] {
  return [`DROP FUNCTION IF EXISTS ${moveFunction(name)} CASCADE`];
}

/** Returns the statements that make a partitioned table note what is under way. */
export function createMoves({ name, table }: Definition): readonly string[] {
  const call = moveFunction(name);
  const setting = settingOf(name);
  const triggers = ["BEFORE", "AFTER"].map(
    (when) =>
      `EXECUTE format('CREATE TRIGGER %I ${when} UPDATE OR DELETE ON %s FOR EACH STATEMENT EXECUTE FUNCTION %s()', ${quoteText(fittingName(`svc_move_${name}`, `_${when.toLowerCase()}`))}, part, ${quoteText(call)});`,
  );
  return [
    `CREATE FUNCTION ${call}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp\n` +
      `AS ${dollarQuoted(`
DECLARE
  svc_last text := coalesce(current_setting(${setting}, true), '');
BEGIN
  -- MERGE may do both: the DELETE, which comes last, keeps its rows from being taken for moved ones.
  PERFORM set_config(${setting}, CASE
    WHEN TG_WHEN = 'AFTER' THEN left(svc_last, -1)
    WHEN TG_OP = 'UPDATE' THEN concat(svc_last, 'u')
    ELSE concat(svc_last, 'x') END, true);
  PERFORM set_config(${movedSettingOf(name)}, '', true);
  RETURN NULL;
END
`)}`,
    `REVOKE ALL ON FUNCTION ${call}() FROM PUBLIC`,
    `DO ${dollarQuoted(`
DECLARE
  part regclass;
BEGIN
  FOR part IN
    SELECT relid FROM pg_partition_tree(${quoteText(quoteTable(table))}::regclass) JOIN pg_class ON oid = relid AND relkind = 'p'
  LOOP
    ${triggers.join("\n    ")}
  END LOOP;
END
`)}`,
  ];
}

/** Returns what the capture does at an INSERT. */
export function unlessMoved(
  definition: Definition,
  {
    create,
    update,
    after,
  }: {
    readonly create: string;
    /** Uses `svc_after`. */
    readonly update: string;
    readonly after: string;
  },
): string {
  if (!foldsMoves(definition)) return `${create};`;
  const moved = movedSettingOf(definition.name);
  return `IF ${isUnderWay(definition.name)} THEN
      DELETE FROM svc.events WHERE id = nullif(current_setting(${moved}, true), '')::bigint
        AND resource = ${quoteText(definition.name)} AND trigger = 'on_delete' AND record_id = ${recordIdOf(definition, "NEW")}
        AND id IN (SELECT event_id FROM svc.outbox WHERE transaction_id = pg_current_xact_id()::text::bigint)
        RETURNING id, snapshot INTO svc_moved, svc_before;
      IF svc_moved IS NOT NULL THEN
        DELETE FROM svc.outbox WHERE event_id = svc_moved;
        PERFORM set_config(${moved}, '', true);
        svc_after := ${after};
        IF svc_after IS DISTINCT FROM svc_before THEN
          ${update};
        END IF;
        RETURN NULL;
      END IF;
    END IF;
    ${create};`;
}

/** Returns what the capture does behind the event of a DELETE: an INSERT may follow. */
export function noteMoved(definition: Definition): string {
  if (!foldsMoves(definition)) return "";
  return `
    IF ${isUnderWay(definition.name)} THEN
      PERFORM set_config(${movedSettingOf(definition.name)}, currval('svc.events_id_seq')::text, true);
    END IF;`;
}
