import { resolve, join } from "node:path";
import { InvalidArgumentError, Option, type Command } from "commander";
import { importMappings, type ImportReport } from "../app/import.ts";
import {
  printRow,
  printRows,
  replaceControlCharacters,
  withOpened,
  type Terminal,
  type CommandOptions,
  type JsonOption,
} from "../kit/cli-output.ts";
import { counted } from "../kit/counted.ts";
import { OperatorError } from "../kit/errors.ts";
import { shownPath } from "../kit/shown-path.ts";
import type { AdminContext } from "./context.ts";

interface Options extends JsonOption {
  readonly schema?: readonly string[];
  readonly tables?: readonly string[];
  readonly exclude?: readonly string[];
  readonly ownerColumn?: string;
  readonly out?: string;
  readonly update?: true;
  readonly force?: true;
}

/** Adds `import`, which writes mapping files for the tables of an existing database. */
export function addImportCommand(
  program: Command,
  { open, cwd, terminal }: CommandOptions<AdminContext> & { readonly cwd: string },
): void {
  program
    .command("import")
    .description("write a mapping file for every table and view of an existing database")
    .option("--schema <names>", "schemas, with commas between them; default: public", namesOf)
    .option("--tables <names>", "only these tables and views; * stands for any characters", namesOf)
    .option("--exclude <names>", "all but these tables and views", namesOf)
    .option("--owner-column <column>", "column with the user who owns a record, where a table has it")
    .option("--out <folder>", "folder of the mapping files; default: resources in the configuration folder")
    .addOption(
      new Option("--update", "update existing files, and keep what was written by hand").conflicts("force"),
    )
    .option("--force", "replace existing files")
    .option("--json", "print JSON")
    .action((options: Options) =>
      withOpened(open, async ({ config, url }) => {
        const folder =
          options.out === undefined ? join(config.configDir, "resources") : resolve(cwd, options.out);
        const report = await importMappings({
          url,
          schemas: [...new Set(options.schema ?? ["public"])],
          tables: options.tables ?? [],
          excluded: options.exclude ?? [],
          ownerColumn: options.ownerColumn,
          folder,
          mode: options.update === true ? "update" : options.force === true ? "replace" : "new",
          onProgress: (line) => terminal.stderr(`${line}\n`),
        });
        if (options.json === true) printRow(terminal, { folder, ...report }, { json: true });
        else print(terminal, report, shownPath(folder, cwd));
        if (report.faults.length > 0) throw new OperatorError(faultsText(report));
      }),
    );
}

function namesOf(text: string, before: readonly string[] = []): readonly string[] {
  const names = text
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
  // An empty variable of a shell must not stand for all tables.
  if (names.length === 0) throw new InvalidArgumentError("Expected names, with commas between them.");
  return [...before, ...names];
}

function print(
  terminal: Terminal,
  { tables, leftOut, partitions, seconds }: ImportReport,
  folder: string,
): void {
  const rows = tables.map(({ table, kind, file, outcome }) => ({ table, kind, file, outcome }));
  printRows(terminal, rows, { json: false, empty: "No mapping file was written." });
  const say = (line: string): void => terminal.stdout(`${replaceControlCharacters(line)}\n`);
  const remarks = tables.flatMap(({ table, remarks: lines }) => lines.map((line) => `${table}: ${line}`));
  if (remarks.length > 0) say("To look at (the files say it too):");
  for (const line of remarks) say(`  ${line}`);
  if (leftOut.length > 0) say("Left out:");
  for (const { table, column, reason } of leftOut)
    say(`  ${table}${column === undefined ? "" : `.${column}`}: ${reason}`);
  if (partitions > 0)
    say(`${counted(partitions, "partition is", "partitions are")} served by the tables above them.`);
  const written = tables.filter(({ outcome }) => outcome !== "unchanged").length;
  say(
    `${written === 0 ? "Every file is up to date" : `Wrote ${counted(written, "mapping file")}`} in ${folder}, in ${seconds} s.`,
  );
  if (written > 0)
    say("Next: svc-admin migrate --plan shows the triggers to install; svc-admin migrate installs them.");
}

function faultsText({ faults }: ImportReport): string {
  const lines = faults.map((fault) => `  ${fault}`);
  return `The files are written, and parts that were written by hand do not fit the tables any more. Correct them:\n${lines.join("\n")}`;
}
