import type { Command } from "commander";
import {
  listAudit,
  presentAudit,
  readParty,
  summaryOf,
  type AuditFilter,
  type Party,
} from "../operations/audit-list.ts";
import { argument, parseTime } from "../kit/cli-arguments.ts";
import { printRows, withOpened, type JsonOption, type CommandOptions } from "../kit/cli-output.ts";
import { actorKinds, auditActionNames, subjectKinds } from "../db/audit.ts";
import type { AdminContext } from "./context.ts";

interface Options extends AuditFilter, JsonOption {
  readonly limit: number;
}

const mostRows = 10_000;

/** Width of each column in characters: with the borders, a table is 100 wide. */
const widths = [20, 23, 22, 22];

/** Adds `audit list`, which shows who changed what. */
export function addAuditCommand(program: Command, { open, terminal }: CommandOptions<AdminContext>): void {
  program
    .command("audit")
    .description("see who changed users, tokens, webhooks, keys and configuration")
    .command("list")
    .description("list changes, newest first; --json shows the values and all details")
    .option(
      "--since <time>",
      "not older than a duration such as 24h, or a UTC time such as 2026-03-28T14:30",
      parseTime,
    )
    .option("--until <time>", "older than a time; for the next page, the time of the last row", parseTime)
    .option(
      "--actor <kind[:id]>",
      `who: ${actorKinds.join(", ")}; with a user's id or a name: user:7`,
      partyIn(actorKinds),
    )
    .option("--action <action>", "what, such as token.created, or token for all about tokens", actionOf)
    .option(
      "--subject <kind[:id]>",
      `to what: ${subjectKinds.join(", ")}; with its id: webhook:12`,
      partyIn(subjectKinds),
    )
    .option("--limit <count>", `most rows to list, up to ${mostRows}`, countOf, 100)
    .option("--json", "print JSON")
    .action(async ({ limit, json = false, ...filter }: Options) => {
      const rows = await withOpened(open, ({ sql }) => listAudit(sql, filter, limit));
      printRows(terminal, rows.map(json ? presentAudit : summaryOf), {
        json,
        empty: "No row of the audit trail matches.",
        widths,
      });
    });
}

function partyIn(kinds: readonly string[]): (text: string) => Party {
  return argument(
    (text) => {
      const party = readParty(text);
      return kinds.includes(party.kind) && party.id !== "" ? party : undefined;
    },
    `Expected ${kinds.join(", ")}, or one of them with an id such as ${kinds[0]}:7.`,
  );
}

const actionOf = argument(
  (text) => auditActionNames.find((name) => name === text),
  `Expected one of ${auditActionNames.join(", ")}.`,
);

const countOf = argument(
  (text) => (/^[1-9]\d{0,4}$/.test(text) && Number(text) <= mostRows ? Number(text) : undefined),
  `Expected an integer from 1 to ${mostRows}.`,
);
