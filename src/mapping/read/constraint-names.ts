import type { Field } from "../definition.ts";
import type { YamlPath } from "../../config/yaml-source.ts";
import { cutTo, fittingName, maxNameBytes, partsOfTable, shortTable } from "../../db/names.ts";
import { keysOf, type Draft } from "./draft.ts";

/** Start of the message about a taken name. An import recognises by it the parts to omit. */
export const takenIndexName = "its index would have the name";

/**
 * Refuses mapping files whose tables would have two indexes or keys with the same name. Names such
 * as `<table>_<column>_idx` are cut to 63 bytes. Prisma refuses them too, but names lines of its
 * own schema.
 */
export function checkConstraintNames(drafts: readonly Draft[]): void {
  const taken = new Map<string, string>();
  const tables = new Set<string>();
  const take = (draft: Draft, path: YamlPath, schema: string, name: string): void => {
    const place = `${draft.source.file}: ${path.join(".")}`;
    // Each schema has separate names.
    const key = JSON.stringify([schema, name]);
    const other = taken.get(key);
    if (other === undefined) taken.set(key, place);
    else
      draft.report(
        path,
        `${takenIndexName} "${name}" (table and column, cut to ${maxNameBytes} bytes), like the one of ${other}; expected another table or column name`,
        "key",
      );
  };
  for (const draft of drafts) {
    const table = draft.content.table ?? draft.content.name;
    // checkNames reports two resources on one table.
    if (table === undefined || tables.has(shortTable(table)) || draft.faultyKeys.has("table")) continue;
    tables.add(shortTable(table));
    const { schema, name } = partsOfTable(table);
    const isManaged = draft.content.managed ?? true;
    const takeIn = (path: YamlPath, stem: string, ending: string): void =>
      take(draft, path, schema, isManaged ? cutName(stem, ending) : fittingName(stem, ending));
    takeIn([draft.content.table === undefined ? "name" : "table"], name, "_pkey");
    const [key] = keysOf(draft);
    for (const field of draft.fields.values()) {
      const ending = field === undefined ? undefined : endingOf(field, key, keysOf(draft).length === 1);
      // svc creates no index in an existing table.
      if (field !== undefined && ending !== undefined && (isManaged || ending !== "_idx"))
        takeIn(["fields", field.name], `${name}_${field.column}`, ending);
    }
    for (const [index, names] of (draft.content.unique ?? []).entries()) {
      const columns = names.map((one) => draft.fields.get(one)?.column ?? one);
      takeIn(["unique", index], [name, ...columns].join("_"), "_key");
    }
  }
}

/**
 * Returns the ending of the index's name; undefined without an index. Key and unique columns need
 * no second index, see models.ts.
 */
function endingOf(field: Field, key: Field | undefined, isSole: boolean): string | undefined {
  const { isKey, isUnique, isIndexed, references, name } = field;
  if (isKey && isSole) return undefined;
  if (isUnique) return "_key";
  if (name === key?.name) return undefined;
  return isIndexed || references !== undefined ? "_idx" : undefined;
}

/** Cuts a name as Prisma does. */
function cutName(stem: string, ending: string): string {
  return cutTo(stem, maxNameBytes - ending.length) + ending;
}
