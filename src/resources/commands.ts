import type { Command } from "commander";
import { printDone, printRows, type Terminal } from "../kit/cli-output.ts";
import { OperatorError } from "../kit/errors.ts";
import { checkDefinitions, describeFaults, loadDefinitions } from "../mapping/load.ts";
import { silentWebhooks } from "./silent-webhooks.ts";
import { unreachableFields } from "./unreachable.ts";

interface Json {
  readonly json?: boolean;
}

/**
 * Adds `resources check` and `resources list` (docs/svc-admin.md, "Commands"). Both end with an
 * OperatorError that lists every fault of the mapping files, when there is one.
 */
export function addResourceCommands(
  program: Command,
  { configDir, terminal }: { readonly configDir: string; readonly terminal: Terminal },
): void {
  const resources = program.command("resources").description("check and list the mapping files");

  resources
    .command("check")
    .description("check every mapping file; needs no database")
    .option("--json", "print JSON")
    .action(async ({ json = false }: Json) => {
      const { definitions, faults } = await checkDefinitions(configDir);
      if (definitions !== undefined || json) {
        const count = definitions?.size ?? 0;
        const warnings = [
          ...[...(definitions?.values() ?? [])].flatMap(unreachableFields),
          ...silentWebhooks(definitions ?? new Map()),
        ];
        const sentence = `No faults in ${count === 1 ? "1 mapping file" : `${count} mapping files`}.`;
        const row = { resources: [...(definitions?.keys() ?? [])], faults, warnings };
        printDone(terminal, { row, sentence, json });
        for (const warning of warnings) if (!json) terminal.stderr(`warning: ${warning}\n`);
      }
      if (definitions === undefined) throw new OperatorError(describeFaults(faults, configDir));
    });

  resources
    .command("list")
    .description("list the resources that the mapping files define")
    .option("--json", "print JSON")
    .action(async ({ json = false }: Json) => {
      const definitions = await loadDefinitions(configDir);
      const rows = [...definitions.values()].map((definition) => ({
        name: definition.name,
        model: definition.model,
        table: definition.table,
        managed: definition.isManaged,
        key: definition.keys.map(({ name }) => name).join(","),
        triggers: definition.triggers,
        file: definition.file,
      }));
      printRows(terminal, rows, { json, empty: "There is no mapping file." });
    });
}
