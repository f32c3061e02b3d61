import type { Command } from "commander";
import { printRow, printRows, withOpened, type JsonOption, type CommandOptions } from "../kit/cli-output.ts";
import { countLimit, receiverCountLimit } from "../operations/stats-texts.ts";
import { readStats, type StatsRow } from "../operations/stats.ts";
import type { AdminContext } from "./context.ts";

/** Columns with their widths in characters: with the borders, a table is 100 wide. */
const ofProcesses = { program: 10, host: 14, pid: 7, version: 7, configuration: 13, reload_faults: 29 };
const ofReceivers = { webhook_id: 10, receiver: 20, state: 7, reason: 17, since: 20, waiting: 7 };

/** Marks counts that ended at their limit, such as `1000+`: there may be many more. */
function atLeast(row: StatsRow, limit: number): StatsRow {
  const shown = (value: unknown): unknown =>
    typeof value === "number" && value >= limit ? `${value}+` : value;
  return Object.fromEntries(Object.entries(row).map(([key, value]) => [key, shown(value)]));
}

/** Adds `status`, which shows what runs and what waits, also while no API answers. */
export function addStatusCommand(program: Command, { open, terminal }: CommandOptions<AdminContext>): void {
  const print = (
    rows: readonly StatsRow[],
    columns: Readonly<Record<string, number>>,
    empty: string,
  ): void => {
    const shown = rows.map((row) => Object.fromEntries(Object.keys(columns).map((key) => [key, row[key]])));
    printRows(terminal, shown, { json: false, empty, widths: Object.values(columns) });
  };
  program
    .command("status")
    .description("show the running processes, the work that waits, and the receivers that fail")
    .option("--json", "print JSON")
    .action(async ({ json = false }: JsonOption) => {
      const asAdmin = { caller: { id: 0, isAdmin: true }, showsWebhooks: true };
      const stats = await withOpened(open, ({ listSql }) => readStats(listSql, asAdmin));
      const { now, backlog, receivers, processes } = stats;
      if (json) return printRow(terminal, { now, backlog, receivers, processes }, { json });
      print(processes ?? [], ofProcesses, "No process of svc runs on this database.");
      printRow(terminal, atLeast(backlog, countLimit), { json });
      const counted = (receivers ?? []).map(({ waiting, ...row }) => ({
        ...row,
        ...atLeast({ waiting }, receiverCountLimit),
      }));
      print(counted, ofReceivers, "No receiver fails, is off or waits for a slot.");
    });
}
