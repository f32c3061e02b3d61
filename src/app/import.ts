import { basename, dirname, join } from "node:path";
import type { ClientBase } from "pg";
import type { Fault } from "../config/yaml-source.ts";
import { counted } from "../kit/counted.ts";
import { hint, questionOf } from "../kit/did-you-mean.ts";
import { OperatorError } from "../kit/errors.ts";
import type { Catalog, CatalogRelation } from "../mapping/import/catalog.ts";
import { importFiles, type Imported } from "../mapping/import/import-files.ts";
import { tableNameOf, type ImportedFile, type LeftOut } from "../mapping/import/imported-table.ts";
import { createPatterns } from "../mapping/import/patterns.ts";
import { readCatalog, readSchemas } from "../mapping/import/read-catalog.ts";
import { checkDefinitions, shownFault } from "../mapping/load.ts";
import { inMigrationTransaction } from "../migration/core-migrations.ts";
import { knownNames, readFolder, tableOf, writeFolder, type ImportFolder } from "./import-folder.ts";
import { findMismatches, refuse, stageFiles, withIncludes, type Staged } from "./import-check.ts";
import type { ImportedText } from "./import-texts.ts";

/** The request for an import: tables and target folder. */
interface ImportRequest {
  readonly url: string;
  readonly schemas: readonly string[];
  /** Names or patterns of tables; empty for all tables. */
  readonly tables: readonly string[];
  readonly excluded: readonly string[];
  /** Undefined: the owner column of the last import, which an update keeps. */
  readonly ownerColumn: string | undefined;
  /** Absolute path of the folder of the mapping files. */
  readonly folder: string;
  /** How to treat files that exist already. */
  readonly mode: "new" | "update" | "replace";
  readonly onProgress: (line: string) => void;
}

/** A table with its file. */
interface ImportedRow {
  readonly table: string;
  readonly resource: string;
  readonly kind: CatalogRelation["kind"];
  readonly file: string;
  readonly outcome: ImportedText["outcome"];
  readonly remarks: readonly string[];
}

export interface ImportReport {
  readonly tables: readonly ImportedRow[];
  readonly leftOut: readonly LeftOut[];
  readonly partitions: number;
  /** Faults in the parts of the current files that were written by hand, each a line. */
  readonly faults: readonly string[];
  readonly seconds: number;
}

/** Limit of the rounds that generate the files again without the refused parts. */
const mostRounds = 8;

/**
 * Writes a mapping file for every wanted table and view. The files pass `resources check` and fit
 * the tables. Parts that do not are left out, with the reason.
 *
 * @throws OperatorError for names that match nothing, and for files that exist already. Also for
 *   faults in files that it does not write.
 */
export async function importMappings(request: ImportRequest): Promise<ImportReport> {
  const startedAt = performance.now();
  const elapsed = (): string => ((performance.now() - startedAt) / 1_000).toFixed(1);
  const folder = await readFolder(request.folder);
  if (request.mode !== "replace" && folder.present.length > 0) await refuseFaults(request.folder);
  return inMigrationTransaction({
    url: request.url,
    isReadOnly: true,
    async work(client) {
      const catalog = await readWanted(client, request);
      const isWanted = wantedBy(request, catalog);
      const wanted = catalog.relations.filter(isWanted);
      request.onProgress(
        `Read ${counted(wanted.length, "table or view", "tables and views")} after ${elapsed()} s.`,
      );
      refusePresent(request, folder, wanted);
      const made = await makeFiles({ client, request, folder, catalog, isWanted });
      request.onProgress(
        `Checked ${counted(made.files.length, "mapping file", "mapping files")} after ${elapsed()} s.`,
      );
      refuseOwner(request, made);
      await writeMade(request, folder, made);
      return {
        tables: made.files.map(({ imported, text }) => rowOf(imported, text)),
        leftOut: made.imported.leftOut,
        partitions: made.imported.partitions,
        faults: made.faults.map((fault) => shownFault(fault, dirname(request.folder))),
        seconds: Number(elapsed()),
      };
    },
  });
}

function rowOf({ table, resource, kind, file, remarks }: ImportedFile, text: ImportedText): ImportedRow {
  const kept = text.kept.map(
    (place) => `${place} was changed by hand and in the table; the value written by hand stays.`,
  );
  return { table, resource, kind, file, outcome: text.outcome, remarks: [...remarks, ...kept] };
}

async function refuseFaults(folder: string): Promise<void> {
  const configDir = dirname(folder);
  const { faults } = await checkDefinitions(configDir, { folder: basename(folder) });
  if (faults.length === 0) return;
  const lines = faults.map((fault) => `  ${shownFault(fault, configDir)}`);
  throw new OperatorError(
    `The mapping files that are there have faults; correct them first, or replace the files with --force:\n${lines.join("\n")}`,
  );
}

async function readWanted(client: ClientBase, { schemas }: ImportRequest): Promise<Catalog> {
  const known = await readSchemas(client);
  const unknown = schemas.find((schema) => !known.includes(schema));
  if (unknown !== undefined)
    throw new OperatorError(`--schema: there is no schema "${unknown}"${hint(unknown, known, '"', ".")}`);
  const catalog = await readCatalog(client, schemas);
  if (catalog.relations.length > 0) return catalog;
  const others = known.filter((schema) => !schemas.includes(schema));
  throw new OperatorError(
    `There is no table and no view in ${schemas.join(", ")}. ${
      others.length === 0
        ? "Is DATABASE_URL the right database?"
        : `Name another schema with --schema: ${others.join(", ")}.`
    }`,
  );
}

function wantedBy(
  { tables, excluded }: ImportRequest,
  { relations }: Catalog,
): (relation: CatalogRelation) => boolean {
  const named = createPatterns(tables);
  const without = createPatterns(excluded);
  const names = relations.map(({ name }) => name);
  for (const [option, patterns] of [
    ["--tables", named],
    ["--exclude", without],
  ] as const) {
    const [unused] = patterns.unused(relations);
    if (unused !== undefined)
      throw new OperatorError(
        `${option}: no table or view matches "${unused}"${hint(unused, names, '"', ".")}`,
      );
  }
  return (relation) => (tables.length === 0 || named.matches(relation)) && !without.matches(relation);
}

function refusePresent(
  { mode, folder: path }: ImportRequest,
  folder: ImportFolder,
  wanted: readonly CatalogRelation[],
): void {
  if (mode !== "new") return;
  const { files } = knownNames(folder, false);
  const there = wanted.flatMap((relation) => files.get(tableNameOf(relation))?.file ?? []);
  if (there.length === 0) return;
  const shown = there.slice(0, 10).join(", ") + (there.length > 10 ? ` and ${there.length - 10} more` : "");
  throw new OperatorError(
    `Nothing was written: ${counted(there.length, "file is", "files are")} there already in ${path} (${shown}). ` +
      "Bring them up to date with --update, which keeps what was written by hand, or replace them with --force.",
  );
}

/**
 * Refuses an owner column that no table has. With a mistyped column, only admins could read the
 * records, and everyone could refer to them.
 */
function refuseOwner({ ownerColumn }: ImportRequest, { imported: { files } }: Made): void {
  if (ownerColumn === undefined || files.some(({ content }) => content["ownerColumn"] !== undefined)) return;
  const columns = files.flatMap(({ content }) => Object.keys(content["fields"] as object));
  const others = columns.filter((name) => name !== ownerColumn);
  throw new OperatorError(
    `Nothing was written: --owner-column: no table has a column "${ownerColumn}" that can hold the id of a user, an integer or a text${questionOf(ownerColumn, others) || "."}`,
  );
}

interface Made {
  readonly files: readonly { readonly imported: ImportedFile; readonly text: ImportedText }[];
  readonly imported: Imported;
  readonly faults: readonly Fault[];
}

interface Making {
  readonly client: ClientBase;
  readonly request: ImportRequest;
  readonly folder: ImportFolder;
  readonly catalog: Catalog;
  readonly isWanted: (relation: CatalogRelation) => boolean;
}

/** Generates the files, checks them, and generates them again without the refused parts. */
async function makeFiles(making: Making): Promise<Made> {
  const { request, folder, catalog, isWanted } = making;
  const known = knownNames(folder, request.mode === "replace");
  const ownerColumn = ownerColumnOf(request, folder);
  const refused = new Map<string, string>();
  const isUsed = (relation: CatalogRelation): boolean =>
    isWanted(relation) || known.files.has(tableNameOf(relation));
  const wanted = new Set(catalog.relations.filter(isWanted).map(tableNameOf));
  for (let round = 1; ; round += 1) {
    const all = importFiles(catalog, { isWanted: isUsed, ownerColumn, known, refused });
    const imported = {
      ...all,
      files: all.files.filter(({ table }) => wanted.has(table)),
      leftOut: all.leftOut.filter(({ table }) => wanted.has(table)),
    };
    const stage = (files: readonly ImportedFile[]): Promise<Staged> =>
      stageFiles({ path: request.folder, folder, files, isUpdate: request.mode === "update" });
    const plain = await stage(imported.files);
    const linked = imported.files.map((file) => withIncludes(file, plain.definitions, folder));
    const staged = await stage(linked);
    const faults =
      staged.definitions === undefined
        ? staged.faults
        : await findMismatches(making.client, staged.definitions, linked);
    const mine = round < mostRounds ? faults.filter(({ file }) => isWhole(staged, file)) : [];
    if (mine.length === 0) {
      const gone = request.mode === "update" ? findGone(request, folder, catalog) : [];
      const files = linked.flatMap((one) => {
        const text = staged.texts.get(one.file);
        return text === undefined ? [] : [{ imported: one, text }];
      });
      return { files, imported, faults: [...faults, ...gone] };
    }
    for (const fault of mine) refuse(fault, linked, refused);
  }
}

function ownerColumnOf({ ownerColumn, mode }: ImportRequest, folder: ImportFolder): string | undefined {
  return ownerColumn ?? (mode === "replace" ? undefined : folder.ownerColumn);
}

/** Finds the files of tables that do not exist any more. */
function findGone(
  { schemas, folder }: ImportRequest,
  { present }: ImportFolder,
  { relations }: Catalog,
): readonly Fault[] {
  const there = new Set(relations.map(tableNameOf));
  return present.flatMap(({ file, content }) => {
    const table = content?.["managed"] === false ? tableOf(content) : undefined;
    if (table === undefined || there.has(table) || !schemas.includes(table.split(".")[0] ?? "")) return [];
    const message = `there is no table ${table} any more; delete the file, or name the table as it is called now`;
    return [{ file: join(basename(folder), file), line: 1, column: 1, key: "table", message }];
  });
}

/** Returns whether the import made the whole text, so that a fault in it is the import's own. */
function isWhole({ texts }: Staged, file: string): boolean {
  const outcome = texts.get(basename(file))?.outcome;
  return outcome === "new" || outcome === "replaced";
}

async function writeMade(request: ImportRequest, folder: ImportFolder, { files }: Made): Promise<void> {
  const texts = files.flatMap(({ imported, text }): [string, string][] =>
    text.outcome === "unchanged" ? [] : [[imported.file, text.text]],
  );
  const last = new Map([
    ...folder.last,
    ...files.map(({ imported: { table, content, comments } }) => [table, { content, comments }] as const),
  ]);
  await writeFolder(request.folder, new Map(texts), { last, ownerColumn: ownerColumnOf(request, folder) });
}
