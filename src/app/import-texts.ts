import { isDeepStrictEqual } from "node:util";
import { editYaml } from "../config/edit-yaml.ts";
import { replaceComment } from "../config/replace-comment.ts";
import { fileText } from "../mapping/import/file-text.ts";
import { mergeContent, renameFields } from "../mapping/import/merge.ts";
import type { FileContent, ImportedFile } from "../mapping/import/imported-table.ts";
import { fieldsByColumn, type LastFile, type PresentFile } from "./import-folder.ts";

/** The generated text of a mapping file, and how it differs from the existing file. */
export interface ImportedText {
  readonly text: string;
  readonly outcome: "new" | "replaced" | "updated" | "unchanged";
  /** Places where both a person and the table changed the same value. The person's value stays. */
  readonly kept: readonly string[];
}

/**
 * Generates the text of a mapping file: a new text, or the existing file with the changes of the
 * table.
 *
 * @param present The existing file; undefined for a new one.
 * @param last Content that the last import wrote; undefined without one.
 * @param schema Path of the JSON Schema for editors.
 */
export function importedText({
  imported,
  present,
  last,
  isUpdate,
  schema,
}: {
  readonly imported: ImportedFile;
  readonly present: PresentFile | undefined;
  readonly last: LastFile | undefined;
  readonly isUpdate: boolean;
  readonly schema: string | undefined;
}): ImportedText {
  if (present?.content === undefined || !isUpdate)
    return {
      text: fileText(imported, schema),
      outcome: present === undefined ? "new" : "replaced",
      kept: [],
    };
  const mine = present.content;
  // The changes have line feeds. A file with Windows line ends gets them everywhere.
  const isWindows = present.text.includes("\r\n");
  const text = isWindows ? present.text.replaceAll("\r\n", "\n") : present.text;
  const before = last === undefined ? guessedLast(mine, imported.content) : renamedLast(last.content, mine);
  const { content, kept } = mergeContent(before, mine, imported.content);
  const comments = { ...last?.comments, ...imported.comments };
  const edited = isDeepStrictEqual(mine, content)
    ? text
    : editYaml({ text, before: mine, after: content, comments });
  const result = last === undefined ? edited : withComments(edited, last, imported);
  if (result === text) return { text: present.text, outcome: "unchanged", kept };
  return { text: isWindows ? result.replaceAll("\n", "\r\n") : result, outcome: "updated", kept };
}

/**
 * Guesses the content that the last import wrote, for a file without a record of it. The guess is
 * the file as it is, so that the update only adds new columns and removes dropped ones.
 */
function guessedLast(mine: FileContent, next: FileContent): FileContent {
  const columns = fieldsByColumn(next);
  const fields = [...fieldsByColumn(mine)].map(([column, name]) => {
    const isThere = columns.get(column) === name;
    return [name, ((isThere ? next : mine)["fields"] as FileContent)[name]] as const;
  });
  return { ...next, fields: Object.fromEntries(fields) };
}

function renamedLast(last: FileContent, mine: FileContent): FileContent {
  const now = fieldsByColumn(mine);
  const renamed = [...fieldsByColumn(last)].flatMap(([column, name]): [string, string][] => {
    const current = now.get(column);
    return current === undefined || current === name ? [] : [[name, current]];
  });
  return renameFields(last, new Map(renamed));
}

function withComments(text: string, last: LastFile, { comments, content }: ImportedFile): string {
  const places = new Set([...Object.keys(last.comments), ...Object.keys(comments)]);
  let result = text;
  for (const place of places) {
    const [before = [], after = []] = [last.comments[place], comments[place]];
    // The comment of a new field was added with the field, and that of a dropped field is removed.
    const isOld = place === "" || isIn(last.content, place);
    const isStill = place === "" || isIn(content, place);
    if (isOld && isStill)
      result = replaceComment(result, place === "" ? undefined : place, { before, after });
  }
  return result;
}

function isIn(content: FileContent, place: string): boolean {
  let value: unknown = content;
  for (const step of place.split(".")) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, step)) return false;
    value = (value as FileContent)[step];
  }
  return true;
}
