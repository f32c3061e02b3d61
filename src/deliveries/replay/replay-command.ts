import { setTimeout as sleep } from "node:timers/promises";
import type { Command } from "commander";
import { parseCount, parseId, parseTime, parseWords } from "../../kit/cli-arguments.ts";
import {
  printDone,
  printRow,
  printRows,
  withOpened,
  type JsonOption,
  type Terminal,
  type CommandOptions,
} from "../../kit/cli-output.ts";
import type { CommandContext } from "../../db/command-context.ts";
import type { Sql } from "../../db/sql.ts";
import { counted } from "../../kit/counted.ts";
import { AppError, OperatorError } from "../../kit/errors.ts";
import { unknownWebhook } from "../webhook-commands.ts";
import { findReplayedSubscription, type ReplayedSubscription } from "./find-replayed.ts";
import { planReplay } from "./plan-replay.ts";
import { readReplayBody } from "./replay-body.ts";
import { createReplay, findReplay, findReplays, moveReplay } from "./replay-store.ts";
import { presentReplay, replayedStatuses, replayMoves, type AskedReplay, type Replay } from "./replay.ts";

interface Given extends JsonOption {
  readonly since?: Date;
  readonly until?: Date;
  readonly status?: AskedReplay["status"];
  readonly events?: string;
  readonly resource?: string;
  readonly dryRun?: boolean;
}

/**
 * Adds `deliveries replay` and the commands that control replays (docs/svc-admin.md, "Commands").
 */
export function addReplayCommand(deliveries: Command, options: CommandOptions<CommandContext>): void {
  const { open, terminal } = options;
  const group = deliveries
    .command("replay")
    .description("deliver the events of a time again to a webhook")
    .argument("<webhook>", "id of the webhook", parseId)
    .option("--since <time>", "events from a time on, or within a duration such as 24h", parseTime)
    .option("--until <time>", "events before a time; default: now", parseTime)
    .option(
      "--status <status>",
      "failed (the default), delivered, cancelled, never; several with commas",
      parseWords(replayedStatuses),
    )
    .option("--events <triggers>", "of these triggers only, with commas")
    .option("--resource <name>", "of one resource only")
    .option("--dry-run", "only count, before filter and access are judged")
    .option("--json", "print JSON, and do not wait for the end")
    .action((id: number, given: Given, command: Command) => {
      // The option is not marked as required, because the subcommands would then require it too.
      const { since } = given;
      if (since === undefined) return command.error("error: required option '--since <time>' not specified");
      return withOpened(open, async ({ sql, listSql, actor }) => {
        const subscription = await findReplayedSubscription(sql, id);
        if (subscription === undefined) throw unknownWebhook(id);
        const asked = await readAsked(sql, subscription, { ...given, since });
        await replay({ sql, listSql, terminal, actor }, subscription, { asked, given });
      });
    });
  addList(group, options);
  for (const [name, state] of Object.entries(replayMoves)) addMove(group, options, { name, state });
}

/** Widths of the columns; with borders, a table is 98 columns wide. */
const widths = [5, 8, 10, 17, 6, 16, 14];

function addList(group: Command, { open, terminal }: CommandOptions<CommandContext>): void {
  group
    .command("list")
    .description("list replays, newest first")
    .option("--webhook <id>", "of one webhook", parseId)
    .option("--limit <count>", "at most so many", parseCount, 100)
    .option("--json", "print JSON")
    .action(({ webhook, limit }: { webhook?: number; limit: number }, command: Command) =>
      withOpened(open, async ({ sql }) => {
        const json = isForMachines(command);
        const replays = await findReplays(sql, { subscriptionId: webhook, limit });
        const rows = replays.map(json ? presentReplay : summaryOf);
        printRows(terminal, rows, { json, empty: "There are no such replays.", widths });
      }),
    );
}

/**
 * Returns whether `--json` was given. The parent command has an option of the same name, which
 * receives it.
 */
function isForMachines(command: Command): boolean {
  return command.optsWithGlobals<JsonOption>().json ?? false;
}

/** Returns the columns that fit on a line of a terminal. */
function summaryOf(one: Replay): Readonly<Record<string, unknown>> {
  const { id, subscriptionId, state, done, total, isEstimate, failed, createdAt, reason } = one;
  return {
    id,
    webhook: subscriptionId,
    state,
    done: `${done} of ${isEstimate ? "about " : ""}${total}`,
    failed,
    created_at: createdAt.toISOString().slice(0, 16).replace("T", " "),
    reason,
  };
}

function addMove(
  group: Command,
  { open, terminal }: CommandOptions<CommandContext>,
  { name, state }: { readonly name: string; readonly state: (typeof replayMoves)[keyof typeof replayMoves] },
): void {
  group
    .command(name)
    .description(`${name} a replay`)
    .argument("<replay>", "id of the replay", parseId)
    .option("--json", "print JSON")
    .action((id: number, _: unknown, command: Command) =>
      withOpened(open, async ({ sql, transact, actor }) => {
        const found = await findReplay(sql, String(id));
        if (found === undefined)
          throw new OperatorError(
            `There is no replay with the id ${id}. See: svc-admin deliveries replay list`,
          );
        const moved = await transact((own) => moveReplay(own, found.id, { state, actor }));
        if (moved === undefined) throw new OperatorError(`The replay ${id} has ended: it is ${found.state}.`);
        if (!moved.hasMoved) terminal.stderr(`The replay ${id} is ${state} already: nothing was changed.\n`);
        printRow(terminal, presentReplay(moved.replay), { json: isForMachines(command) });
      }),
    );
}

async function readAsked(
  sql: Sql,
  subscription: ReplayedSubscription,
  given: Given & { readonly since: Date },
): Promise<AskedReplay> {
  const { since, until, status, events, resource } = given;
  const installed = await sql<{ name: string }>("SELECT name FROM svc.installed_resources");
  const body = {
    since: since.toISOString(),
    ...(until !== undefined && { until: until.toISOString() }),
    ...(status !== undefined && { status }),
    ...(events !== undefined && { events: events.split(",") }),
    ...(resource !== undefined && { resource }),
  };
  const isResource = (name: string): boolean =>
    name === subscription.resource || installed.some((one) => one.name === name);
  try {
    return readReplayBody(body, { subscription, isResource, now: new Date() }).asked;
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    throw new OperatorError(error.message);
  }
}

async function replay(
  {
    sql,
    listSql,
    terminal,
    actor,
  }: Pick<CommandContext, "sql" | "listSql" | "actor"> & { readonly terminal: Terminal },
  subscription: ReplayedSubscription,
  { asked, given: { dryRun = false, json = false } }: { readonly asked: AskedReplay; readonly given: Given },
): Promise<void> {
  if (!dryRun && !subscription.isActive)
    throw new OperatorError(
      `The webhook is off: svc-admin webhooks enable ${subscription.id} sends what is held.`,
    );
  // This command does not read the access rules of the mapping files, so it judges every event as
  // readable.
  const everything = { judge: async (pairs: readonly unknown[]) => pairs.map(() => true) };
  const plan = await planReplay({ sql: listSql, eligibility: everything }, subscription, asked);
  if (dryRun) {
    const { total: count, isEstimate, eventIds } = plan;
    const about = isEstimate ? "about " : "";
    const first = eventIds.length === 0 ? "." : `, the first with the ids ${eventIds.join(", ")}.`;
    const sentence = `${about}${counted(count, "event")}${first}`;
    const row = { count, is_estimate: isEstimate, event_ids: eventIds.map(Number) };
    return printDone(terminal, { row, sentence, json });
  }
  const made = await createReplay(sql, subscription, { asked, plan: { ...plan, isEstimate: true }, actor });
  if (made === undefined)
    throw new OperatorError(
      "This webhook has a replay that has not ended: wait for it, or cancel it. See: svc-admin deliveries replay list",
    );
  const shown = json || terminal.ask === undefined ? made : await follow(sql, terminal, made);
  printRow(terminal, presentReplay(shown), { json });
}

const barWidth = 40;
const lookEveryMs = 500;

/** Shows the progress of a replay, until it ends or is paused. */
async function follow(sql: Sql, terminal: Terminal, made: Replay): Promise<Replay> {
  let now = made;
  while (now.state === "running") {
    await sleep(lookEveryMs);
    now = (await findReplay(sql, made.id)) ?? { ...now, state: "cancelled" };
    const share = now.total === 0 ? 1 : Math.min(1, now.done / now.total);
    const bar = "#".repeat(Math.floor(share * barWidth)).padEnd(barWidth, ".");
    terminal.stderr(`\r[${bar}] ${now.done} of ${now.isEstimate ? "about " : ""}${now.total}   `);
  }
  terminal.stderr("\n");
  return now;
}
