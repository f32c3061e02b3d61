import { dollarQuoted, fittingName, quoteName, quoteTable, quoteText } from "../db/names.ts";
import type { Definition } from "../mapping/definition.ts";

/**
 * Returns whether the two halves of an UPDATE that moves a row to another partition are folded into
 * one event. For this UPDATE, PostgreSQL fires the triggers of a DELETE and then those of an
 * INSERT.
 *
 * A trigger of the partitioned table notes the running statement in a setting. An INSERT within an
 * UPDATE removes the event of the DELETE before it, and records an update. One statement may also
 * delete a row and insert another. Therefore the row must be in another partition, with the same
 * key. One of several fields of the key may differ, because a key has the partition's column. So
 * one statement that deletes (1, 5) and inserts (1, 6) elsewhere makes one update. A writer who
 * forges the setting can only merge a deletion and a creation of its own transaction.
 */
export function foldsMoves({ isManaged, triggers }: Definition): boolean {
  // The tables of the service have no partitions.
  return !isManaged && triggers.length === 3;
}

function moveFunction(resource: string): string {
  return `svc.${quoteName(fittingName(`move_${resource}`))}`;
}

/**
 * Returns the name of the setting that lists the running statements: `u` for an UPDATE, `x` for a
 * DELETE.
 */
function settingOf(resource: string): string {
  return quoteText(`svc.under_way_${Buffer.from(resource).toString("hex")}`);
}

/**
 * Returns the name of the setting of the last DELETE within a running UPDATE. It holds the id of
 * the event, and the partition of the row.
 */
function movedSettingOf(resource: string): string {
  return quoteText(`svc.moved_${Buffer.from(resource).toString("hex")}`);
}

/**
 * Returns the SQL condition that the innermost running statement is an UPDATE of a partitioned
 * table.
 */
function isUnderWay(resource: string): string {
  return `current_setting(${settingOf(resource)}, true) LIKE '%u'`;
}

/**
 * Returns the statements that remove the objects of `createMoves`. They are no-ops without these
 * objects.
 */
export function dropMoves({ name }: { readonly name: string }): readonly string[] {
  return [`DROP FUNCTION IF EXISTS ${moveFunction(name)} CASCADE`];
}

/** Returns the statements that make a partitioned table note its running statements. */
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

/** Returns the PL/pgSQL of the capture for an INSERT. */
export function unlessMoved(
  definition: Definition,
  {
    create,
    update,
    after,
  }: {
    readonly create: string;
    /** Statement that records the update; uses the variable `svc_after`. */
    readonly update: string;
    readonly after: string;
  },
): string {
  if (!foldsMoves(definition)) return `${create};`;
  const moved = movedSettingOf(definition.name);
  const noted = (part: number): string => `split_part(current_setting(${moved}, true), ' ', ${part})`;
  const changes = definition.keys.map(
    ({ name }) => `(snapshot -> ${quoteText(name)} IS DISTINCT FROM svc_after -> ${quoteText(name)})::int`,
  );
  return `IF ${isUnderWay(definition.name)} THEN
      svc_after := ${after};
      DELETE FROM svc.events WHERE id = nullif(${noted(1)}, '')::bigint AND ${noted(2)} <> TG_RELID::oid::text
        AND resource = ${quoteText(definition.name)} AND trigger = 'on_delete' AND ${changes.join(" + ")} <= ${Math.min(1, changes.length - 1)}
        AND id IN (SELECT event_id FROM svc.outbox WHERE transaction_id = pg_current_xact_id()::text::bigint)
        RETURNING id, snapshot INTO svc_moved, svc_before;
      IF svc_moved IS NOT NULL THEN
        DELETE FROM svc.outbox WHERE event_id = svc_moved;
        PERFORM set_config(${moved}, '', true);
        IF svc_after IS DISTINCT FROM svc_before THEN
          ${update};
        END IF;
        RETURN NULL;
      END IF;
    END IF;
    ${create};`;
}

/**
 * Returns the PL/pgSQL after the event of a DELETE, which notes the event because an INSERT may
 * follow.
 */
export function noteMoved(definition: Definition): string {
  if (!foldsMoves(definition)) return "";
  return `
    IF ${isUnderWay(definition.name)} THEN
      PERFORM set_config(${movedSettingOf(definition.name)}, concat(currval('svc.events_id_seq'), ' ', TG_RELID::oid), true);
    END IF;`;
}
