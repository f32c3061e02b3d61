import type { TableIndex } from "../definition.ts";
import { findField, keysOf, type Draft } from "./draft.ts";

const writing = ["supportsCreate", "supportsUpdate", "supportsDelete", "createRules", "updateRules"] as const;

/** Checks `view`: refuses keys that make no sense for records that cannot be changed. */
export function checkView(draft: Draft): void {
  const { content } = draft;
  if (content.view !== true) return;
  if (content.managed !== false) draft.report(["view"], "expected `managed: false` beside it");
  if (content.triggers !== undefined && content.triggers.length > 0)
    draft.report(
      ["triggers"],
      "a view has no triggers, since PostgreSQL fires none when the rows behind it change; expected [], and triggers on the tables beneath it",
    );
  for (const key of writing) {
    const given = content[key];
    if (given !== undefined && given !== false)
      draft.report([key], "the records of a view cannot be changed");
  }
}

/** Reads `unique`: lists of fields whose values together are unique. */
export function readUniques(draft: Draft): readonly (readonly string[])[] {
  const { unique = [] } = draft.content;
  const keyNames = keysOf(draft).map(({ name }) => name);
  const seen = new Set(keyNames.length > 1 ? [setOf(keyNames)] : []);
  for (const [index, names] of unique.entries()) {
    checkFields(draft, ["unique", index], names);
    if (seen.has(setOf(names)))
      draft.report(["unique", index], "these fields are unique already, by the key or by another list");
    seen.add(setOf(names));
  }
  return unique;
}

export function readIndexes(draft: Draft): readonly TableIndex[] {
  const { indexes = [], managed = true } = draft.content;
  if (!managed && indexes.length > 0)
    draft.report(["indexes"], "is for managed tables; svc makes no index in an existing table");
  return indexes.map(({ fields, where, type = "btree" }, index) => {
    checkFields(draft, ["indexes", index, "fields"], fields);
    return { fields, type, ...(where !== undefined && { where }) };
  });
}

/** Refuses rules and an owner column that would write columns that the database computes. */
export function checkGenerated(draft: Draft): void {
  const isGenerated = (name: string): boolean => draft.fields.get(name)?.isGenerated === true;
  for (const key of ["createRules", "updateRules"] as const) {
    for (const name of Object.keys(draft.content[key] ?? {})) {
      const [field = name] = name.split(".");
      if (isGenerated(field))
        draft.report([key, name], "the database computes the field, so that no request can set it", "key");
    }
  }
  const { ownerColumn } = draft.content;
  if (ownerColumn !== undefined && isGenerated(ownerColumn))
    draft.report(["ownerColumn"], "the database computes the field, so that no owner can be set");
}

function checkFields(draft: Draft, path: readonly (string | number)[], names: readonly string[]): void {
  for (const [index, name] of names.entries()) {
    const place = [...path, index];
    const field = findField(draft, name, place);
    if (field?.native === "xml") draft.report(place, "PostgreSQL does not compare xml");
    if (names.indexOf(name) < index) draft.report(place, `"${name}" is in the list already`);
  }
}

function setOf(names: readonly string[]): string {
  return JSON.stringify(names.toSorted());
}
