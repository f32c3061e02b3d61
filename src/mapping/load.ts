import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { counted } from "../kit/counted.ts";
import { codeOf, OperatorError } from "../kit/errors.ts";
import { shownPath } from "../kit/shown-path.ts";
import { compareFaults, faultText, parseYaml, readYamlFile, type Fault } from "../config/yaml-source.ts";
import type { AdminRule, Definition, Definitions, Field } from "./definition.ts";
import { readAccess } from "./read/access.ts";
import { readBaseQuery } from "./read/base-query.ts";
import { checkCode } from "./read/check-code.ts";
import { loadCode } from "./read/code.ts";
import { shortTable } from "../db/names.ts";
import { checkConstraintNames } from "./read/constraint-names.ts";
import { compileMappingSchema, createDraft, findField, type Draft, type Drafts } from "./read/draft.ts";
import { ownerTypes, readFields } from "./read/fields.ts";
import { checkNames } from "./read/check-names.ts";
import { checkIncludes, checkListPaths } from "./read/list-keys.ts";
import { linkRelations } from "./read/relations.ts";
import { checkRules } from "./read/check-rules.ts";
import { checkGenerated, checkView, readIndexes, readUniques } from "./read/table-keys.ts";
import { readTransform } from "./read/transform-tree.ts";

/** The definitions of the mapping files, or their faults. */
export interface Check {
  /** Sorted by name; undefined when there are faults. */
  readonly definitions: Definitions | undefined;
  /** Faults of all files, by file and place. Paths are relative to the configuration folder. */
  readonly faults: readonly Fault[];
}

const defaultFolder = "resources";

/** Options of a check that differs from the mapping files of a configuration. */
interface CheckOptions {
  /** Name of the folder below the configuration folder. */
  readonly folder?: string;
  /** Texts by file name, which replace files of the folder or are added to them. */
  readonly texts?: ReadonlyMap<string, string>;
  /** Whether to also check the results of code modules, whose faults fail single requests. */
  readonly withAnswers?: boolean;
}

/**
 * Reads every mapping file, `resources/*.yaml` and `*.yml`, with its code module.
 *
 * @param configDir Absolute path of the configuration folder.
 */
export async function checkDefinitions(
  configDir: string,
  { folder = defaultFolder, texts, withAnswers = false }: CheckOptions = {},
): Promise<Check> {
  const files = await listFiles(join(configDir, folder), texts && [...texts.keys()]);
  if (typeof files === "string") {
    const why = files === "ENOENT" ? "" : `, which can be read (${files})`;
    const message = `expected a folder with mapping files at ${join(configDir, folder)}${why}; it may be empty. SVC_CONFIG_DIR names the folder around it`;
    return { definitions: undefined, faults: [{ file: folder, line: 1, column: 1, key: "", message }] };
  }
  const validate = compileMappingSchema();
  const all = files.map((name) => {
    const file = join(folder, name);
    const text = texts?.get(name);
    const source = text === undefined ? readYamlFile(join(configDir, file), file) : parseYaml(text, file);
    return createDraft(source, validate);
  });
  const drafts = byName(all);
  checkNames(all);
  for (const draft of all) {
    readFields(draft);
    await loadCode(draft, configDir);
  }
  linkRelations(all, drafts);
  checkConstraintNames(all);
  if (withAnswers) for (const draft of all) checkCode(draft, drafts);
  const definitions = all.map((draft) => toDefinition(draft, drafts, configDir));
  const made = new Map(definitions.flatMap((one) => (one === undefined ? [] : [[one.name, one] as const])));
  for (const [index, draft] of all.entries()) checkListPaths(draft, definitions[index], made);

  const faults = all.flatMap((draft) => draft.faults).toSorted(compareFaults);
  if (faults.length > 0) return { definitions: undefined, faults };
  const sorted = definitions
    .flatMap((definition) => definition ?? [])
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
  return { definitions: new Map(sorted.map((definition) => [definition.name, definition])), faults };
}

/**
 * Does the same as `checkDefinitions`, for programs that cannot continue with a fault.
 *
 * @throws OperatorError that lists every fault.
 */
export async function loadDefinitions(configDir: string): Promise<Definitions> {
  const { definitions, faults } = await checkDefinitions(configDir);
  if (definitions === undefined)
    throw new OperatorError(describeFaults(faults, configDir), {
      faults: faults.map((fault) => shownFault(fault, configDir)),
    });
  return definitions;
}

/** Formats all faults for an operator, with paths relative to the working folder. */
export function describeFaults(faults: readonly Fault[], configDir: string): string {
  const lines = faults.map((fault) => `  ${shownFault(fault, configDir)}`);
  return `${counted(faults.length, "fault")} in the mapping files:\n${lines.join("\n")}`;
}

/** Formats a fault for an operator, like `describeFaults`. */
export function shownFault(fault: Fault, configDir: string): string {
  return faultText({ ...fault, file: shownPath(join(configDir, fault.file)) });
}

/**
 * Returns the names of the mapping files, or the error code of a folder that cannot be read.
 * Ignores hidden files, which belong to editors.
 *
 * @param further Names of files that do not exist yet, nor perhaps their folder.
 */
async function listFiles(
  folder: string,
  further: readonly string[] | undefined,
): Promise<readonly string[] | string> {
  try {
    const names = await readdir(folder);
    const files = names.filter((name) => /^[^.].*\.ya?ml$/.test(name));
    return [...new Set([...files, ...(further ?? [])])].toSorted();
  } catch (error) {
    return further?.toSorted() ?? codeOf(error) ?? "unknown error";
  }
}

/** Returns the drafts by name; the first of two with the same name, which is a fault. */
function byName(all: readonly Draft[]): Drafts {
  const drafts = new Map<string, Draft>();
  for (const draft of all) {
    const { name } = draft.content;
    if (name !== undefined && !drafts.has(name)) drafts.set(name, draft);
  }
  return drafts;
}

/**
 * Returns the definition of a draft; undefined when a required part has a fault, which is reported
 * already.
 */
function toDefinition(draft: Draft, drafts: Drafts, configDir: string): Definition | undefined {
  const { content, source } = draft;
  const transform = readTransform(draft, drafts);
  const baseQuery = readBaseQuery(draft, drafts);
  const access = readAccess(draft, drafts);
  checkRules(draft, drafts);
  checkOwnerColumn(draft);
  checkSearchableColumns(draft);
  checkTriggers(draft);
  checkIncludes(draft);
  checkView(draft);
  checkGenerated(draft);
  const uniques = readUniques(draft);
  const indexes = readIndexes(draft);

  const fields = [...draft.fields.values()].filter((field) => field !== undefined);
  const keys = fields.filter(({ isKey }) => isKey);
  const [key] = keys;
  const { name, model, triggers } = content;
  if (key === undefined || name === undefined || model === undefined || triggers === undefined)
    return undefined;
  const isView = content.view ?? false;
  const faultAt: Definition["faultAt"] = (path, message) => source.faultAt(path, message, "key");
  return {
    file: source.file,
    name,
    model,
    table: shortTable(content.table ?? name),
    isManaged: content.managed ?? true,
    isView,
    fields,
    key,
    keys,
    uniques,
    indexes,
    relations: [...draft.relations.values()].filter((relation) => relation !== undefined),
    triggers,
    keepsPrevious: content.previous ?? false,
    ...(transform !== undefined && { transform }),
    ...(content.createRules !== undefined && { createRules: content.createRules }),
    ...(content.updateRules !== undefined && { updateRules: content.updateRules }),
    ...(content.ownerColumn !== undefined && { ownerColumn: content.ownerColumn }),
    isAdmin: toAdminRule(content.isAdmin ?? "flag"),
    access,
    searchableColumns: content.searchableColumns ?? [],
    ...(content.filterable !== undefined && { filterable: content.filterable }),
    ...(content.sortable !== undefined && { sortable: content.sortable }),
    includes: content.includes ?? [],
    count: content.count ?? "exact",
    baseQuery,
    supportsCreate: !isView && (content.supportsCreate ?? true),
    supportsUpdate: !isView && (content.supportsUpdate ?? true),
    supportsDelete: !isView && (content.supportsDelete ?? true),
    ...(content.webhookMaxAttempts !== undefined && { webhookMaxAttempts: content.webhookMaxAttempts }),
    ...(content.webhookBackoff !== undefined && { webhookBackoff: content.webhookBackoff }),
    code: draft.code,
    ...(draft.codeHash !== undefined && { codeHash: draft.codeHash }),
    remark: (path, message) => shownFault(faultAt(path, message), configDir),
    faultAt,
  };
}

function toAdminRule(given: "flag" | "nobody" | readonly string[]): AdminRule {
  return typeof given === "string" ? { kind: given } : { kind: "emails", emails: given };
}

function checkOwnerColumn(draft: Draft): void {
  const { ownerColumn } = draft.content;
  if (ownerColumn === undefined) return;
  const path = ["ownerColumn"];
  const field = findField(draft, ownerColumn, path);
  if (field !== undefined && (!ownerTypes.includes(field.type) || field.isList)) {
    draft.report(
      path,
      `expected a field of type ${ownerTypes.join(", ")}, which can hold the id of a user; ${typeOf(field)}`,
    );
  }
}

function checkSearchableColumns(draft: Draft): void {
  const names = draft.content.searchableColumns ?? [];
  for (const [index, name] of names.entries()) {
    const path = ["searchableColumns", index];
    const field = findField(draft, name, path);
    if (names.indexOf(name) < index) draft.report(path, `"${name}" is in the list already`);
    else if (field !== undefined && (field.type !== "String" || field.isList)) {
      draft.report(path, `expected a String field, since a search compares text; ${typeOf(field)}`);
    }
  }
}

function typeOf({ name, type, isList }: Field): string {
  return `${name} is ${isList ? `a list of ${type}` : type}`;
}

function checkTriggers(draft: Draft): void {
  const { triggers = [] } = draft.content;
  for (const [index, trigger] of triggers.entries()) {
    if (triggers.indexOf(trigger) < index)
      draft.report(["triggers", index], `"${trigger}" is in the list already`);
  }
  if (draft.content.previous === true && !triggers.includes("on_update"))
    draft.report(["previous"], "only updates have an old row; expected on_update among the triggers");
}
