import type { Command } from "commander";
import type { CommandContext } from "../db/command-context.ts";
import { counted } from "../kit/counted.ts";
import {
  printRow,
  withOpened,
  type JsonOption,
  type Terminal,
  type CommandOptions,
} from "../kit/cli-output.ts";
import { OperatorError } from "../kit/errors.ts";
import { countEvents, eraseRecord, type ErasedRecord } from "./erase.ts";

interface Options extends JsonOption {
  readonly resource: string;
  readonly record: string;
  readonly yes?: boolean;
}

const remark =
  "The record in its table was not touched. Delete it first where it is to go: its deletion is an event " +
  "with the old row. If it was changed or deleted since, erase again.\n";

/** Adds `erase`, which removes every payload of one record from the service's own tables. */
export function addEraseCommand(program: Command, options: CommandOptions<CommandContext>): void {
  program
    .command("erase")
    .description("remove every payload of one record from events, deliveries and attempts, for good")
    .requiredOption("--resource <name>", "name of the resource")
    .requiredOption("--record <id>", "id of the record, as record_id of events and deliveries has it")
    .option("--yes", "do it without a question")
    .option("--json", "print JSON")
    .action((given: Options) => erase(options, given));
}

async function erase(
  { open, terminal }: CommandOptions<CommandContext>,
  { resource, record: recordId, yes = false, json = false }: Options,
): Promise<void> {
  const record = { resource, recordId };
  const erased = await withOpened(open, async ({ transact, sql, actor }) => {
    const count = await countEvents(sql, record);
    if (count === 0)
      throw new OperatorError(
        `There are no events of the record ${recordId} of ${resource}. Check both with: svc-admin deliveries list --resource ${resource}`,
      );
    if (!yes) await confirm(terminal, record, count);
    return eraseRecord({
      transact,
      record,
      actor,
      onProgress({ events }) {
        if (events < count)
          terminal.stderr(`${events.toLocaleString("en")} of ${counted(count, "event")} so far\n`);
      },
    });
  });
  printRow(terminal, { resource, record_id: recordId, ...erased }, { json });
  terminal.stderr(remark);
}

async function confirm(
  { ask }: Terminal,
  { resource, recordId }: ErasedRecord,
  count: number,
): Promise<void> {
  if (ask === undefined) throw new OperatorError("Nothing was erased. Without a terminal, add --yes.");
  const question = `Erase every payload of the record ${recordId} of ${resource}, in ${counted(count, "event")}, for good? Type yes: `;
  if ((await ask(question)).trim() !== "yes") throw new OperatorError("Nothing was erased.");
}
