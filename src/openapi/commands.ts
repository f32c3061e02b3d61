import type { Command } from "commander";
import type { Config } from "../config/load.ts";
import { printJson, type Terminal } from "../kit/cli-output.ts";
import type { Definitions } from "../mapping/definition.ts";
import { createDocument } from "./document.ts";

/** Adds `openapi` (docs/svc-admin.md, "Commands"). */
export function addOpenApiCommand(
  program: Command,
  {
    read,
    terminal,
  }: {
    /** Reads settings and mapping files; rejects with an OperatorError that lists their faults. */
    readonly read: () => Promise<{ readonly config: Config; readonly definitions: Definitions }>;
    readonly terminal: Terminal;
  },
): void {
  program
    .command("openapi")
    .description("print the OpenAPI document of the API; needs no database")
    .option("--json", "print JSON, as without it")
    .action(async () => {
      printJson(terminal, createDocument(await read()));
    });
}
