import type { Command } from "commander";
import { argument } from "../kit/cli-arguments.ts";
import type { AdminContext } from "./context.ts";
import { printRows, withOpened, type JsonOption, type CommandOptions } from "../kit/cli-output.ts";
import type { CheckedConfiguration } from "../app/configuration.ts";
import { counted } from "../kit/counted.ts";
import { OperatorError } from "../kit/errors.ts";
import { placeOf, reloadAll, type Answer } from "../operations/reload-all.ts";

interface Options extends JsonOption {
  /** In seconds. */
  readonly timeout: number;
}

/**
 * Adds `reload`, which makes every process of the service load its settings and mapping files
 * again, on any host.
 *
 * @param read Reads the configuration of the command's own host; throws OperatorError with every
 *   fault.
 */
export function addReloadCommand(
  program: Command,
  {
    open,
    read,
    terminal,
  }: CommandOptions<AdminContext> & { readonly read: () => Promise<CheckedConfiguration> },
): void {
  program
    .command("reload")
    .description("check settings and mapping files, and have every running process load them")
    .option("--timeout <seconds>", "how long to wait for the answers", secondsOf, 60)
    .option("--json", "print JSON")
    .action(async ({ json = false, timeout }: Options) => {
      await read();
      const answers = await withOpened(open, ({ sql, actor }) => reloadAll(sql, actor, timeout * 1_000));
      if (answers.length === 0)
        throw new OperatorError(
          "No process of svc runs on this database. The files have no fault; the next start loads them.",
        );
      const rows = answers.map(({ asked: { program: name, host, pid }, outcome, configuration, faults }) => ({
        program: name,
        host,
        pid,
        outcome,
        configuration,
        // Without `--json`, the error lists the faults.
        ...(json ? { faults } : {}),
      }));
      printRows(terminal, rows, { json, empty: "" });
      const failures = answers.filter(({ outcome }) => outcome === "refused" || outcome === "no answer");
      if (failures.length > 0) throw new OperatorError(describe(failures, answers.length));
    });
}

const secondsOf = argument((text) => {
  const seconds = Number(text);
  return seconds > 0 && seconds <= 86_400 ? seconds : undefined;
}, "Expected seconds, more than 0 and at most 86400.");

function describe(failures: readonly Answer[], count: number): string {
  const lines = failures.flatMap((answer) =>
    answer.outcome === "refused"
      ? [
          `  ${placeOf(answer)}, keeps the previous configuration:`,
          ...answer.faults.map((fault) => `    - ${fault}`),
        ]
      : [`  ${placeOf(answer)}, gave no answer in time; it reloads when its database connection is back`],
  );
  return `${failures.length} of ${counted(count, "process", "processes")} did not reload:\n${lines.join("\n")}`;
}
