import type { Field } from "../definition.ts";
import type { Draft } from "./draft.ts";
import { maxNameBytes } from "./fields.ts";

/**
 * Refuses mapping files whose tables would have two indexes or keys of one name. Names such as
 * `<table>_<column>_idx` are cut to 63 bytes. Prisma refuses them too, but names lines of its own
 * schema.
 */
export function checkConstraintNames(drafts: readonly Draft[]): void {
  const taken = new Map<string, string>();
  const tables = new Set<string>();
  const take = (draft: Draft, path: readonly string[], name: string): void => {
    const place = `${draft.source.file}: ${path.join(".")}`;
    const other = taken.get(name);
    if (other === undefined) taken.set(name, place);
    else
      draft.report(
        path,
        `its index would have the name "${name}" (table and column, cut to ${maxNameBytes} bytes), like the one of ${other}; expected another table or column name`,
        "key",
      );
  };
  for (const draft of drafts) {
    const table = draft.content.table ?? draft.content.name;
    // checkNames reports two resources on one table.
    if (table === undefined || tables.has(table) || draft.faultyKeys.has("table")) continue;
    tables.add(table);
    take(draft, [draft.content.table === undefined ? "name" : "table"], cutName(table, "_pkey"));
    for (const field of draft.fields.values()) {
      const ending = field === undefined ? undefined : endingOf(field);
      if (field !== undefined && ending !== undefined)
        take(draft, ["fields", field.name], cutName(`${table}_${field.column}`, ending));
    }
  }
}

/**
 * Returns the ending of the index's name. Key and unique columns need no second index, see
 * models.ts.
 */
function endingOf({ isKey, isUnique, isIndexed, references }: Field): string | undefined {
  if (isKey) return undefined;
  if (isUnique) return "_key";
  return isIndexed || references !== undefined ? "_idx" : undefined;
}

/** Cuts a name as Prisma does. */
function cutName(stem: string, ending: string): string {
  const room = maxNameBytes - ending.length;
  const cut = new TextDecoder().decode(Buffer.from(stem).subarray(0, room), { stream: true });
  return cut + ending;
}
