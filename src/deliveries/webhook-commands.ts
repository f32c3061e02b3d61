import { InvalidArgumentError, type Command } from "commander";
import type { Config } from "../config/load.ts";
import { actingCte, actorText } from "../db/audit.ts";
import type { CommandContext } from "../db/command-context.ts";
import type { Sql } from "../db/sql.ts";
import { parseCount, parseId } from "../kit/cli-arguments.ts";
import {
  printDone,
  printRow,
  printRows,
  withOpened,
  type JsonOption,
  type OutputRow,
  type CommandOptions,
} from "../kit/cli-output.ts";
import { OperatorError } from "../kit/errors.ts";
import { always } from "../querying/condition.ts";
import { openSecretBox, type KeyConfig } from "../subscriptions/commands.ts";
import { findSubscription, findSubscriptions } from "../subscriptions/own-subscriptions.ts";
import { longestGrace, rotateSecret, usualGrace } from "../subscriptions/rotate-secret.ts";
import { standardSecret } from "../subscriptions/secret.ts";
import { refuseUnknownKeys } from "../subscriptions/stored-secrets.ts";
import { presentSubscription, type OwnSubscription } from "../subscriptions/subscription.ts";
import { hostOf } from "./admission/admission.ts";
import { createSender } from "./attempt/send.ts";
import { presentResult } from "./delivery-json.ts";
import { createTestWebhook } from "./test-delivery.ts";

type WebhookCommandsOptions = CommandOptions<
  CommandContext & { readonly config: KeyConfig & Pick<Config, "webhooks"> }
>;

const shownOnce = "The secret is not shown again: give it to the owner of the receiver.\n";
/** Widths of the columns; with borders, a table is 99 columns wide. */
const widths = [7, 26, 14, 22, 14];
/** Longer values continue on the next line. */
const widestValue = 68;

/** Adds `webhooks` (docs/svc-admin.md, "Commands"). */
export function addWebhookCommands(program: Command, options: WebhookCommandsOptions): void {
  const group = program
    .command("webhooks")
    .description("list, switch, test and rotate the webhooks of all users");
  addList(group, options);
  one(group, "show", "show a webhook").action((id: number, { json = false }: JsonOption) =>
    withOpened(options.open, async ({ sql }) => {
      const webhook = await getSubscription(sql, id);
      const row = withUser(webhook, await usersOf(sql, [webhook]));
      printRow(options.terminal, row, { json, width: widestValue });
    }),
  );
  addState(group, options, { name: "enable", isActive: true });
  addState(group, options, { name: "disable", isActive: false });
  addTest(group, options);
  addRotation(group, options);
}

function one(group: Command, name: string, description: string): Command {
  return group
    .command(name)
    .description(description)
    .argument("<id>", "id of the webhook", parseId)
    .option("--json", "print JSON");
}

function addList(group: Command, { open, terminal }: WebhookCommandsOptions): void {
  interface Options extends JsonOption {
    readonly user?: number;
    readonly limit: number;
  }
  group
    .command("list")
    .description("list webhooks, newest first")
    .option("--user <id>", "only those of the user", parseId)
    .option("--limit <count>", "at most so many", parseCount, 100)
    .option("--json", "print JSON")
    .action(({ user, limit, json = false }: Options) =>
      withOpened(open, async ({ listSql, sql }) => {
        const query = { filter: always, sort: undefined, limit: limit + 1 };
        const found = await findSubscriptions(listSql, user ?? "everybody", query);
        const shown = found.slice(0, limit);
        const users = await usersOf(sql, shown);
        const rows = shown.map((each) => (json ? withUser(each, users) : summaryOf(each, users)));
        printRows(terminal, rows, { json, empty: "There are no webhooks.", widths });
        if (!json && found.length > limit) terminal.stderr(`These are the newest ${limit}. See --limit.\n`);
      }),
    );
}

function addState(
  group: Command,
  { open, terminal }: WebhookCommandsOptions,
  { name, isActive }: { readonly name: string; readonly isActive: boolean },
): void {
  const description = isActive
    ? "switch a webhook on; it gets its events and the deliveries that wait"
    : "switch a webhook off; its deliveries wait";
  one(group, name, description).action((id: number, { json = false }: JsonOption) =>
    withOpened(open, async ({ sql, actor }) => {
      await getSubscription(sql, id);
      await sql(
        `WITH ${actingCte("$3")} UPDATE svc.subscriptions SET is_active = $2, updated_at = now() FROM acting WHERE id = $1 AND is_active <> $2`,
        [id, isActive, actorText(actor)],
      );
      const webhook = await getSubscription(sql, id);
      if (isActive && !webhook.isActive)
        throw new OperatorError(
          `The user ${webhook.userId} of webhook ${id} is disabled. See: svc-admin users enable ${webhook.userId}`,
        );
      const sentence = `Webhook ${id} is ${isActive ? "active" : "paused"}.`;
      printDone(terminal, { row: presentSubscription(webhook), sentence, json });
    }),
  );
}

function addTest(group: Command, { open, terminal }: WebhookCommandsOptions): void {
  one(group, "test", "send a ping to the receiver of a webhook").action(
    (id: number, { json = false }: JsonOption) =>
      withOpened(open, async ({ config, sql, transact }) => {
        await getSubscription(sql, id);
        const secretBox = await openSecretBox(config);
        const sender = createSender({ ...config.webhooks, maxSockets: config.webhooks.concurrency });
        try {
          const testWebhook = createTestWebhook({
            sql,
            transact,
            send: (post, user) => sender.send(post, user),
            secretBox,
            timeoutMs: config.webhooks.timeoutMs,
          });
          const answer = await testWebhook(id);
          if (answer.kind === "tooMany") throw new OperatorError(answer.reason);
          if (answer.kind !== "made") throw new OperatorError("The ping could not be sent now; try again.");
          const row = { delivery_id: answer.uuid, ...presentResult(answer.result) };
          printRow(terminal, row, { json, width: widestValue });
          if (answer.result.error !== undefined)
            throw new OperatorError(answer.result.detail ?? answer.result.error);
        } finally {
          sender.close();
        }
      }),
  );
}

function addRotation(group: Command, { open, terminal }: WebhookCommandsOptions): void {
  one(group, "rotate-secret", "make a new secret, and print it once")
    .option(
      "--grace <seconds>",
      "how long the previous secret signs as well; 0: not at all",
      graceOf,
      usualGrace,
    )
    .action((id: number, { grace, json = false }: JsonOption & { readonly grace: number }) =>
      withOpened(open, async ({ config, transact, sql, actor }) => {
        const { url } = await getSubscription(sql, id);
        const secretBox = await openSecretBox(config);
        // With the key of another service, no process could sign, or start again.
        await refuseUnknownKeys({ sql, secretBox });
        const secret = await transact((transaction) =>
          rotateSecret(transaction, { id, owner: "everybody", graceSeconds: grace, secretBox, actor }),
        );
        if (secret === undefined) throw unknownWebhook(id);
        const { user_id, previous_secret_until } = presentSubscription(await getSubscription(sql, id));
        const standard_secret = standardSecret(secret);
        const row = { id, user_id, url, secret, standard_secret, previous_secret_until };
        // A secret that is broken into two lines cannot be copied.
        printRow(terminal, row, { json, width: standard_secret.length });
        terminal.stderr(shownOnce);
      }),
    );
}

async function getSubscription(sql: Sql, id: number): Promise<OwnSubscription> {
  const found = await findSubscription(sql, id, "everybody");
  if (found === undefined) throw unknownWebhook(id);
  return found;
}

export function unknownWebhook(id: number): OperatorError {
  return new OperatorError(`There is no webhook with the id ${id}. See: svc-admin webhooks list`);
}

interface User {
  readonly id: number;
  readonly name: string;
  readonly email: string;
}

async function usersOf(sql: Sql, webhooks: readonly OwnSubscription[]): Promise<ReadonlyMap<number, User>> {
  const ids = [...new Set(webhooks.map(({ userId }) => userId))];
  const users = await sql<User>("SELECT id, name, email FROM svc.users WHERE id = ANY($1::int[])", [ids]);
  return new Map(users.map((user) => [user.id, user]));
}

function withUser(webhook: OwnSubscription, users: ReadonlyMap<number, User>): OutputRow {
  const { id, user_id, ...rest } = presentSubscription(webhook);
  const { name = null, email = null } = users.get(webhook.userId) ?? {};
  return { id, user_id, user_name: name, user_email: email, ...rest };
}

/**
 * Returns the columns of a webhook. Shows only the receiver's host, because the path often acts as
 * a password.
 */
function summaryOf(webhook: OwnSubscription, users: ReadonlyMap<number, User>): OutputRow {
  const { id, userId, resource, url, disabledReason, failingSince } = webhook;
  return {
    id,
    user: `${userId} ${users.get(userId)?.email ?? ""}`.trim(),
    resource,
    receiver: hostOf(url),
    state:
      disabledReason === null
        ? failingSince === null
          ? "active"
          : "active, fails"
        : `off: ${disabledReason}`,
  };
}

function graceOf(text: string): number {
  const seconds = /^\d{1,6}$/.test(text) ? Number(text) : Number.NaN;
  if (seconds <= longestGrace) return seconds;
  throw new InvalidArgumentError(`It must be a whole number of seconds from 0 to ${longestGrace}.`);
}
