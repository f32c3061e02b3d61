import { existsSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { ClientBase } from "pg";
import type { Fault } from "../config/yaml-source.ts";
import type { Definition, Definitions } from "../mapping/definition.ts";
import type { FileContent, ImportedFile } from "../mapping/import/imported-table.ts";
import { checkDefinitions } from "../mapping/load.ts";
import { takenIndexName } from "../mapping/read/constraint-names.ts";
import { schemasOf } from "../mapping/models.ts";
import { checkExistingTables } from "../migration/existing-table.ts";
import { readSchema } from "../migration/live-tables.ts";
import type { ImportFolder } from "./import-folder.ts";
import { importedText, type ImportedText } from "./import-texts.ts";

/** Generated files that are not written yet. */
export interface Staged {
  readonly texts: ReadonlyMap<string, ImportedText>;
  /** Undefined when a file has a fault. */
  readonly definitions: Definitions | undefined;
  readonly faults: readonly Fault[];
}

/** Generates the texts of files, and checks them together with the files that exist. */
export async function stageFiles({
  path,
  folder,
  files,
  isUpdate,
}: {
  /** Absolute path of the folder. */
  readonly path: string;
  readonly folder: ImportFolder;
  readonly files: readonly ImportedFile[];
  readonly isUpdate: boolean;
}): Promise<Staged> {
  const besides = "../schema/resource.schema.json";
  const schema = existsSync(join(path, besides)) ? besides : undefined;
  const present = new Map(folder.present.map((one) => [one.file, one]));
  const texts = new Map(
    files.map((imported) => {
      const { file, table } = imported;
      const last = folder.last.get(table);
      return [file, importedText({ imported, present: present.get(file), last, isUpdate, schema })];
    }),
  );
  const { definitions, faults } = await checkDefinitions(dirname(path), {
    folder: basename(path),
    texts: new Map([...texts].map(([file, { text }]) => [file, text])),
  });
  return { texts, definitions, faults };
}

/** Adds the relations of both directions to a file. */
export function withIncludes(
  imported: ImportedFile,
  definitions: Definitions | undefined,
  folder: ImportFolder,
): ImportedFile {
  const known = definitions?.get(imported.resource)?.relations.map(({ name }) => name);
  const includes = known ?? folder.last.get(imported.table)?.content["includes"];
  if (!Array.isArray(includes) || includes.length === 0) return imported;
  return { ...imported, content: { ...imported.content, includes } };
}

/** Finds parts of the files that do not fit the tables. */
export async function findMismatches(
  client: ClientBase,
  definitions: Definitions,
  files: readonly ImportedFile[],
): Promise<readonly Fault[]> {
  const remarks: Fault[] = [];
  const made = files.flatMap(({ resource }) => definitions.get(resource) ?? []);
  const remarked = made.map((definition): Definition => ({
    ...definition,
    remark(path, message) {
      remarks.push({ file: definition.file, line: 1, column: 1, key: path.join("."), message });
      return message;
    },
  }));
  const { relations } = await readSchema(client, schemasOf(definitions));
  const findings = await checkExistingTables(client, remarked, relations);
  // Remarks for the operator are not faults.
  const found = new Set(findings.flatMap(({ faults }) => faults));
  return remarks.filter(({ message }) => found.has(message));
}

/**
 * Records the part that a check refused, so that the next round leaves it out: a reference, the
 * mark of a unique column, a column, or else the whole table.
 */
export function refuse(fault: Fault, files: readonly ImportedFile[], refused: Map<string, string>): void {
  const imported = files.find(({ file }) => file === basename(fault.file));
  if (imported === undefined) return;
  const { table, content } = imported;
  const [, name = "", key] = /^fields\.([^.[]+)(?:\.(\w+))?/.exec(fault.key) ?? [];
  const field = (content["fields"] as Readonly<Record<string, FileContent>>)[name];
  const column = typeof field?.["column"] === "string" ? field["column"] : name;
  const place = `${table}\0${column}`;
  const isReference = field?.["references"] !== undefined;
  const isIndex = fault.message.startsWith(takenIndexName);
  if (field === undefined) refused.set(table, fault.message);
  else if (isReference && (isIndex || key === "references" || key === "as" || key === "onDelete"))
    refused.set(`${place}\0references`, fault.message);
  else if (isIndex && field["unique"] === true) refused.set(`${place}\0unique`, fault.message);
  else if (field["id"] === true) refused.set(table, `${column}: ${fault.message}`);
  else refused.set(place, fault.message);
}
