import type { Command } from "commander";
import { printDone, printJson, printRows, type JsonOption, type Terminal } from "../kit/cli-output.ts";
import { counted } from "../kit/counted.ts";
import { OperatorError } from "../kit/errors.ts";
import { yamlText } from "../config/yaml-lines.ts";
import { hint } from "../kit/did-you-mean.ts";
import type { Definitions } from "../mapping/definition.ts";
import { prismaModelOf, prismaSchemaOf } from "../mapping/models.ts";
import { accessFaults } from "./access.ts";
import { shownDefinition } from "./show-definition.ts";
import { checkDefinitions, describeFaults, loadDefinitions } from "../mapping/load.ts";
import { impossibleRules } from "./impossible-rules.ts";
import { silentWebhooks } from "./silent-webhooks.ts";
import { unreachableFields } from "./unreachable.ts";

/**
 * Adds `resources check`, `list` and `show`, and `schema` (docs/svc-admin.md, "Commands"). If the
 * mapping files have faults, all of them end with an OperatorError that lists every fault.
 */
export function addResourceCommands(
  program: Command,
  { configDir, terminal }: { readonly configDir: string; readonly terminal: Terminal },
): void {
  const resources = program.command("resources").description("check, list and show the mapping files");

  resources
    .command("check")
    .description("check every mapping file; needs no database")
    .option("--json", "print JSON")
    .action(async ({ json = false }: JsonOption) => {
      const check = await checkDefinitions(configDir, { withAnswers: true });
      // The start refuses a rule that cannot decide, so the check must refuse it too.
      const faults = [...check.faults, ...accessFaults(check.definitions ?? new Map())];
      const definitions = faults.length > 0 ? undefined : check.definitions;
      if (definitions !== undefined || json) {
        const fine: Definitions = definitions ?? new Map();
        const warnings = [
          ...[...fine.values()].flatMap(unreachableFields),
          ...[...fine.values()].flatMap(impossibleRules),
          ...silentWebhooks(fine),
        ];
        const sentence = `No faults in ${counted(fine.size, "mapping file")}.`;
        const row = { resources: [...fine.keys()], faults, warnings };
        printDone(terminal, { row, sentence, json });
        for (const warning of warnings) if (!json) terminal.stderr(`warning: ${warning}\n`);
      }
      if (definitions === undefined) throw new OperatorError(describeFaults(faults, configDir));
    });

  resources
    .command("list")
    .description("list the resources that the mapping files define")
    .option("--json", "print JSON")
    .action(async ({ json = false }: JsonOption) => {
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

  resources
    .command("show")
    .description("print a definition with every default and rule in effect, and its Prisma model")
    .argument("<name>", "name of the resource")
    .option("--json", "print JSON")
    .action(async (name: string, { json = false }: JsonOption) => {
      const definitions = await loadDefinitions(configDir);
      const definition = definitions.get(name);
      if (definition === undefined)
        throw new OperatorError(`There is no resource "${name}"${hint(name, definitions.keys())}`);
      const shown = shownDefinition(definition, definitions);
      const model = prismaModelOf(definition, definitions);
      if (json) printJson(terminal, { definition: shown, prisma_model: model });
      else terminal.stdout(`${yamlText(shown)}\n# Prisma model:\n${model.replaceAll(/^/gm, "# ")}\n`);
    });

  program
    .command("schema")
    .description("print the Prisma schema of all resources, for programs that use Prisma on the tables")
    .option("--json", "print JSON")
    .action(async ({ json = false }: JsonOption) => {
      const schema = prismaSchemaOf(await loadDefinitions(configDir));
      if (json) printJson(terminal, { schema });
      else terminal.stdout(schema);
    });
}
