import { quoteTable, quoteText } from "../db/names.ts";
import type { Definition, Field } from "../mapping/definition.ts";
import type { Condition } from "../querying/condition.ts";

/** Which row of an event: as it became, or as it was before an update. */
export type SnapshotColumn = "snapshot" | "previous";

/**
 * Writes the snapshot of the event `e` as a row of the resource's table, `t`: so a condition holds
 * for deleted records too. It has the columns that the conditions ask for.
 *
 * @param which The old row of an update is in `previous`.
 */
export function snapshotRow(
  definition: Definition,
  conditions: readonly Condition[],
  which: SnapshotColumn = "snapshot",
): string {
  const fields = new Map(conditions.flatMap((condition) => [...fieldsOf(condition)]));
  // The keys of a snapshot are names of fields.
  const pairs = [...fields].map(([column, name]) => `${quoteText(column)}, e.${which} -> ${quoteText(name)}`);
  return `jsonb_populate_record(NULL::${quoteTable(definition.table)}, jsonb_build_object(${pairs.join(", ")})) AS t`;
}

/** Returns the record's own fields in a condition, by column. */
function fieldsOf(condition: Condition): ReadonlyMap<string, string> {
  const fields = new Map<string, string>();
  const note = ({ column, name }: Field): void => void fields.set(column, name);
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
