import type { Command } from "commander";
import { parseDuration } from "../kit/cli-arguments.ts";
import { counted } from "../kit/counted.ts";
import { printDone, withOpened, type JsonOption, type CommandOptions } from "../kit/cli-output.ts";
import type { CommandContext } from "../db/command-context.ts";
import { pruneEvents } from "./prune.ts";

interface Options extends JsonOption {
  readonly olderThan: number;
  readonly plan?: boolean;
}

const pagesPerReport = 100;

/** Adds `prune`, which deletes old finished events from the service's own tables. */
export function addPruneCommand(program: Command, { open, terminal }: CommandOptions<CommandContext>): void {
  program
    .command("prune")
    .description("delete old events whose deliveries are all finished, with these and their attempts")
    .requiredOption(
      "--older-than <duration>",
      "how long ago they were finished, such as 30d or 12h; m stands for minutes",
      parseDuration,
    )
    .option("--plan", "count them, and delete nothing")
    .option("--json", "print JSON")
    .action(async ({ olderThan, plan = false, json = false }: Options) => {
      let pages = 0;
      const pruned = await withOpened(open, ({ transact }) =>
        pruneEvents({
          transact,
          olderThanMs: olderThan,
          isPlan: plan,
          onProgress({ events }) {
            pages += 1;
            if (pages % pagesPerReport === 0) terminal.stderr(`${counted(events, "event")} so far\n`);
          },
        }),
      );
      const { events, deliveries } = pruned;
      const sentence = `${counted(events, "event")} and ${counted(deliveries, "delivery", "deliveries")} ${plan ? "would be deleted" : "deleted"}.`;
      printDone(terminal, { row: { events, deliveries }, sentence, json });
    });
}
