import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { OperatorError, codeOf } from "../kit/errors.ts";
import { namesIn, readText } from "../kit/read-files.ts";
import type { Comments } from "../config/edit-yaml.ts";
import { parseYaml } from "../config/yaml-source.ts";
import { delegateNameOf } from "../mapping/read/check-names.ts";
import type { FileContent, KnownFile, KnownNames } from "../mapping/import/imported-table.ts";
import { isObject } from "../kit/is-object.ts";

/** A mapping file that exists. */
export interface PresentFile {
  readonly file: string;
  readonly text: string;
  /** Undefined when the text cannot be read. */
  readonly content: FileContent | undefined;
}

/** Content and comments that the last import wrote into a file. */
export interface LastFile {
  readonly content: FileContent;
  readonly comments: Comments;
}

/** The folder of the mapping files. */
export interface ImportFolder {
  readonly present: readonly PresentFile[];
  /** Contents that the last import wrote, by table. */
  readonly last: ReadonlyMap<string, LastFile>;
  /** The owner column of the last import. */
  readonly ownerColumn: string | undefined;
}

/** The name is hidden, so that no program takes the file for a mapping file. */
const recordName = ".svc-import.json";

/** Reads the folder. A missing folder counts as empty. */
export async function readFolder(folder: string): Promise<ImportFolder> {
  const names = await namesIn(folder);
  const present = await Promise.all(
    names
      .filter((name) => /^[^.].*\.ya?ml$/.test(name))
      .toSorted()
      .map(async (file): Promise<PresentFile> => {
        const text = await readText(join(folder, file));
        const { value } = parseYaml(text, file);
        return { file, text, content: isObject(value) ? value : undefined };
      }),
  );
  return names.includes(recordName)
    ? { present, ...(await readRecord(folder)) }
    : { present, last: new Map(), ownerColumn: undefined };
}

async function readRecord(folder: string): Promise<Omit<ImportFolder, "present">> {
  try {
    const text = await readFile(join(folder, recordName), "utf8");
    const { tables, ownerColumn } = JSON.parse(text) as {
      readonly tables: Readonly<Record<string, LastFile>>;
      readonly ownerColumn?: string;
    };
    return { last: new Map(Object.entries(tables)), ownerColumn };
  } catch (error) {
    throw new OperatorError(
      `${join(folder, recordName)} cannot be read. Restore what the last import wrote, or delete it: columns that were taken out by hand then come back.`,
      { cause: error },
    );
  }
}

/** Returns the table of a mapping file, qualified with its schema: `public.orders`. */
export function tableOf({ table, name }: FileContent): string | undefined {
  const given = typeof table === "string" ? table : name;
  if (typeof given !== "string") return undefined;
  return given.includes(".") ? given : `public.${given}`;
}

/**
 * Returns the names that are taken, and the names that files of existing tables already have.
 *
 * @param isReplaced Whether the file of a table is written from the start again.
 */
export function knownNames({ present }: ImportFolder, isReplaced: boolean): KnownNames {
  const existing = present.filter(({ content }) => content?.["managed"] === false);
  const others = present.filter((one) => !existing.includes(one));
  const texts = (key: string): readonly string[] =>
    others.flatMap(({ content }) => (typeof content?.[key] === "string" ? [content[key]] : []));
  const files = new Map(
    existing.flatMap(({ file, content = {} }): [string, KnownFile][] => {
      const { name, model } = content;
      const table = tableOf(content);
      if (typeof name !== "string" || typeof model !== "string" || table === undefined) return [];
      const fields = isReplaced ? new Map<string, string>() : fieldsByColumn(content);
      return [[table, { file, resource: name, model, fields }]];
    }),
  );
  // A new file is named after its resource.
  const fileNames = [...others, ...files.values()].map(({ file }) => file.replace(/\.ya?ml$/, ""));
  return {
    resources: new Set([...texts("name"), ...fileNames]),
    models: new Set(texts("model").map(delegateNameOf)),
    managed: new Map(
      others.flatMap(({ file, content = {} }): [string, string][] => {
        const table = tableOf(content);
        return table === undefined ? [] : [[table, file]];
      }),
    ),
    files,
  };
}

export function fieldsByColumn({ fields }: FileContent): ReadonlyMap<string, string> {
  if (!isObject(fields)) return new Map();
  return new Map(
    Object.entries(fields).map(([name, field]) => {
      const column = isObject(field) ? field["column"] : name;
      return [typeof column === "string" ? column : name, name];
    }),
  );
}

/**
 * Writes files, each of them atomically, and the record of their contents. An import without files
 * creates nothing.
 */
export async function writeFolder(
  folder: string,
  texts: ReadonlyMap<string, string>,
  { last, ownerColumn }: Omit<ImportFolder, "present">,
): Promise<void> {
  if (texts.size === 0 && last.size === 0) return;
  try {
    await mkdir(folder, { recursive: true });
    for (const [file, text] of texts) await writeWhole(join(folder, file), text);
    const sorted = [...last].toSorted(([a], [b]) => (a < b ? -1 : 1));
    const record = {
      about:
        "What the last svc-admin import wrote. Keep it with the mapping files: --update compares with it.",
      ownerColumn,
      tables: Object.fromEntries(sorted),
    };
    await writeWhole(join(folder, recordName), `${JSON.stringify(record, null, 1)}\n`);
  } catch (error) {
    throw new OperatorError(
      `${folder} cannot be written (${codeOf(error) ?? "unknown error"}); see which user runs the command, and import again with --update.`,
      { cause: error },
    );
  }
}

async function writeWhole(path: string, text: string): Promise<void> {
  await writeFile(`${path}.new`, text);
  await rename(`${path}.new`, path);
}
