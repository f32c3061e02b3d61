import { quoteTable, quoteText } from "../db/names.ts";
import type { Definition, Field } from "../mapping/definition.ts";
import type { Condition } from "../querying/condition.ts";

/** Column of an event's row: as it became, or as it was before an update. */
export type SnapshotColumn = "snapshot" | "previous";

/**
 * Returns the SQL that turns the snapshot of the event `e` into a row `t` of the resource's table.
 * A condition can then apply to deleted records too. The row has the columns that the conditions
 * use. Columns without a value come from a row of nulls. Without it, PostgreSQL would refuse
 * columns whose domain is NOT NULL. The regclass makes a cached plan depend on the table. Otherwise
 * the plan would read NULL for a renamed column, and no user could read the events.
 *
 * @param which Column to read; the old row of an update is in `previous`.
 */
export function snapshotRow(
  definition: Definition,
  conditions: readonly Condition[],
  which: SnapshotColumn = "snapshot",
): string {
  const fields = new Map(conditions.flatMap((condition) => [...fieldsOf(condition)]));
  const pairs = [...fields].map(([column, field]) => `${quoteText(column)}, ${valueText(field, which)}`);
  const table = quoteTable(definition.table);
  const nulls = `(SELECT ROW(nulls.*)::${table} FROM unnest(ARRAY[NULL]::${table}[]) AS nulls
    WHERE ${quoteText(table)}::regclass IS NOT NULL)`;
  return `jsonb_populate_record(${nulls}, jsonb_strip_nulls(jsonb_build_object(${pairs.join(", ")}))) AS t`;
}

/**
 * Returns the SQL of a snapshot field as JSON that its column accepts. The keys of the snapshot are
 * names of fields. PostgreSQL would take base64 for the bytes themselves.
 */
function valueText({ name, type, native, isList }: Field, which: SnapshotColumn): string {
  const key = quoteText(name);
  const value = `e.${which} -> ${key}`;
  if (type !== "Bytes" || native !== undefined) return value;
  if (!isList) return hexOf(`e.${which} ->> ${key}`);
  const items = `jsonb_array_elements_text(${value}) WITH ORDINALITY AS items (item, place)`;
  return `CASE jsonb_typeof(${value}) WHEN 'array' THEN to_jsonb(ARRAY(SELECT ${hexOf("item")} FROM ${items} ORDER BY place)) END`;
}

function hexOf(text: string): string {
  return `'\\x' || encode(decode(${text}, 'base64'), 'hex')`;
}

/** Returns the record's own fields in a condition, by column. */
function fieldsOf(condition: Condition): ReadonlyMap<string, Field> {
  const fields = new Map<string, Field>();
  const note = (field: Field): void => void fields.set(field.column, field);
  const visit = (one: Condition): void => {
    switch (one.kind) {
      case "all":
      case "any":
        return one.of.forEach(visit);
      case "not":
      case "notFalse":
        return visit(one.of);
      case "related":
        return note(one.link.from);
      case "version":
        return;
      case "compare":
      case "in":
      case "null":
      case "like":
      case "list":
      case "json":
        return note(one.field);
    }
  };
  visit(condition);
  return fields;
}
