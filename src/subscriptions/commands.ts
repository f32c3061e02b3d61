import type { Command } from "commander";
import {
  printDone,
  printRows,
  withOpened,
  type JsonOption,
  type Terminal,
  type CommandOptions,
} from "../kit/cli-output.ts";
import type { Config } from "../config/load.ts";
import type { CommandContext } from "../db/command-context.ts";
import type { Sql } from "../db/sql.ts";
import { OperatorError } from "../kit/errors.ts";
import { loadSecretKey } from "../config/secret-key.ts";
import { createSecretBox, keyIdOf, type SecretBox } from "./secret.ts";
import { reencryptSecrets, replaceUnreadable, type UnreadableSecret } from "./stored-secrets.ts";

type SubscriptionCommandsOptions = CommandOptions<CommandContext & { readonly config: KeyConfig }>;

/** The settings of the key that encrypts webhook secrets. */
export type KeyConfig = Pick<Config, "dataDir" | "database" | "previousSecretKeys" | "secretKey">;

const batchSize = 500;
/** Most subscriptions that a message names; `--json` lists all. */
const mostNamed = 20;

/**
 * `secret-key rotate`: encrypts the webhook secrets with the new key after a change of
 * `SVC_SECRET_KEY`.
 */
export function addSubscriptionCommands(
  program: Command,
  { open, terminal }: SubscriptionCommandsOptions,
): void {
  const group = program
    .command("secret-key")
    .description("change the key that webhook secrets are encrypted with");
  group
    .command("rotate")
    .description(
      "encrypt the webhook secrets with SVC_SECRET_KEY that are encrypted with SVC_PREVIOUS_SECRET_KEYS",
    )
    .option(
      "--replace-unreadable",
      "when their key is lost for good: make new secrets where none of the keys opens the old one, and print them once",
    )
    .option("--json", "print JSON")
    .action(({ replaceUnreadable: mayReplace = false, json = false }: Options) =>
      withOpened(open, async ({ config, sql, actor }) => {
        const secretBox = await openSecretBox(config);
        const { reencrypted, current, unreadable } = await reencryptSecrets({
          sql,
          secretBox,
          actor,
          batchSize,
          onProgress: ({ reencrypted: done, of }) => terminal.stderr(`${done} of ${of} re-encrypted\n`),
        });
        if (reencrypted > 0) await warnOfRunningProcesses(sql, secretBox, terminal);
        const replaced = mayReplace ? await replaceUnreadable({ sql, secretBox, unreadable, actor }) : [];
        const left = mayReplace ? [] : unreadable;
        const secrets = replaced.map(({ id, userId, url, secret, lostHeaders }) => ({
          id,
          user_id: userId,
          url,
          secret: secret ?? null,
          lost_headers: lostHeaders,
        }));
        printDone(terminal, {
          row: {
            reencrypted,
            current,
            ...(mayReplace ? { replaced: secrets } : {}),
            unreadable: left.map(({ id, userId, url, reason }) => ({ id, user_id: userId, url, reason })),
          },
          sentence: `${reencrypted} re-encrypted, ${current} already current, ${replaced.length} replaced, ${left.length} unreadable.`,
          json,
        });
        if (secrets.length > 0) {
          if (!json) printRows(terminal, secrets, { json, empty: "" });
          terminal.stderr("These secrets are not shown again: give each to the owner of its receiver.\n");
        }
        if (left.length > 0) throw new OperatorError(describeUnreadable(left));
      }),
    );
}

// A process renews its row every 6 s. A process that was not seen for 15 s has ended.
const runningText = `
  SELECT count(*)::int AS count, min(started_at) AS since FROM svc.processes WHERE seen_at > now() - interval '15 seconds'`;

/** Warns that running processes have only the keys that they were started with. */
async function warnOfRunningProcesses(
  sql: Sql,
  { currentHead }: Pick<SecretBox, "currentHead">,
  terminal: Pick<Terminal, "stderr">,
): Promise<void> {
  const [running] = await sql<{ count: number; since: Date | null }>(runningText);
  if (running === undefined || running.since === null) return;
  const { count, since } = running;
  const run = count === 1 ? "1 process runs, " : `${count} processes run, the first `;
  terminal.stderr(
    `${run}since ${since.toISOString()}. Each must have been started with the new key (id ${keyIdOf(currentHead)}): ` +
      "one without it cannot sign. Restart those with both keys; their deliveries wait until then.\n",
  );
}

interface Options extends JsonOption {
  readonly replaceUnreadable?: boolean;
}

/** Creates the box of the webhook secrets with the key in the settings of `svc-admin`. */
export async function openSecretBox({
  dataDir,
  database,
  previousSecretKeys,
  secretKey,
}: KeyConfig): Promise<SecretBox> {
  // The service creates a key, in the data folder, only for the embedded database.
  if (secretKey === undefined && database.url !== undefined)
    throw new OperatorError("Set SVC_SECRET_KEY: the key that encrypts the webhook secrets.");
  return createSecretBox(await loadSecretKey({ configured: secretKey, dataDir }), previousSecretKeys);
}

function describeUnreadable(unreadable: readonly UnreadableSecret[]): string {
  const lines = unreadable.slice(0, mostNamed).map(({ id, reason }) => `  - subscription ${id}: ${reason}`);
  const more =
    unreadable.length > mostNamed ? [`  - and ${unreadable.length - mostNamed} more (see --json)`] : [];
  return [
    "Webhook secrets cannot be read:",
    ...lines,
    ...more,
    "Give the key they were encrypted with in SVC_PREVIOUS_SECRET_KEYS and run this again. If it is lost for good, run it with --replace-unreadable.",
  ].join("\n");
}
