import { InvalidArgumentError, type Command } from "commander";
import { parseDuration, parseId, parseText } from "../kit/cli-arguments.ts";
import { printDone, printRow, printRows, type JsonOption, type OutputRow } from "../kit/cli-output.ts";
import { formatDateTime } from "../kit/date-time.ts";
import { OperatorError } from "../kit/errors.ts";
import { isScope, scopeFault } from "../kit/scopes.ts";
import { withUsers, type UserCommandsOptions } from "./command-context.ts";
import { nameFault } from "./input.ts";
import { presentToken } from "./present.ts";
import { unknownUser, type TokenInfo } from "./provider.ts";

export const defaultTokenName = "default";
/** Text after a new token. */
export const shownOnce = "This is the only time that the token is shown. Keep it in a safe place.\n";

/** Adds `tokens create`, `list` and `revoke`. */
export function addTokenCommands(program: Command, options: UserCommandsOptions): void {
  const { open, terminal } = options;
  const group = program.command("tokens").description("create, list and revoke access tokens");
  group
    .command("create")
    .description("create a token for a user, and print it once")
    .requiredOption("--user <id>", "id of the user", parseId)
    .option("--name <name>", "name of the token", parseText(nameFault), defaultTokenName)
    .option("--scope <scope>", "what the token may do; repeatable (default: *)", collectScope)
    .option(
      "--expires-in <duration>",
      "life of the token, such as 90d, 12h or 30m (default: no end)",
      parseDuration,
    )
    .option("--json", "print JSON")
    .action((given: CreateOptions) => createToken(options, given));
  group
    .command("list")
    .description("list the tokens of a user, or of all users")
    .option("--user <id>", "id of the user (default: all users)", parseId)
    .option("--json", "print JSON")
    .action(async ({ user, json = false }: JsonOption & { user?: number }) => {
      const rows = await withUsers(open, async ({ users, tokens }) => {
        if (user !== undefined && (await users.find(user)) === undefined) throw unknownUser(user);
        return (await tokens.list(user)).map(tokenRow);
      });
      const whose = user === undefined ? "No user has a token" : `The user ${user} has no tokens`;
      printRows(terminal, rows, { json, empty: `${whose}.` });
    });
  group
    .command("revoke")
    .description("revoke a token, for ever")
    .argument("<id>", "id of the token", parseId)
    .option("--json", "print JSON")
    .action(async (id: number, { json = false }: JsonOption) => {
      const token = await withUsers(open, ({ tokens }) => tokens.revoke(id));
      if (token === undefined)
        throw new OperatorError(`There is no token with the id ${id}. See: svc-admin tokens list`);
      printDone(terminal, {
        row: tokenRow(token),
        sentence: `The token ${id} (${token.name}) is revoked.`,
        json,
      });
    });
}

interface CreateOptions extends JsonOption {
  readonly user: number;
  readonly name: string;
  readonly scope?: readonly string[];
  readonly expiresIn?: number;
}

async function createToken(
  { open, terminal }: UserCommandsOptions,
  { user, name, scope: scopes, expiresIn, json = false }: CreateOptions,
): Promise<void> {
  const { issued, isDisabled } = await withUsers(open, async ({ users, tokens, resources }) => {
    refuseUnknownScopes(scopes ?? [], await resources());
    return {
      issued: await tokens.issue({ userId: user, name, scopes, expiresAt: expiryOf(expiresIn) }),
      isDisabled: (await users.find(user))?.disabledAt instanceof Date,
    };
  });
  printRow(
    terminal,
    {
      id: issued.id,
      user_id: issued.userId,
      name: issued.name,
      token: issued.token,
      scopes: issued.scopes,
      expires_at: formatDateTime(issued.expiresAt),
      created_at: formatDateTime(issued.createdAt),
    },
    { json },
  );
  terminal.stderr(shownOnce);
  if (isDisabled)
    terminal.stderr(
      `The user ${user} is disabled: the token answers 401 until svc-admin users enable ${user}\n`,
    );
}

function tokenRow(token: TokenInfo): OutputRow {
  const { parent_id: _hidden, ...row } = presentToken(token);
  return row;
}

/**
 * Returns the expiry of a token with this lifetime from now on; undefined for a token without an
 * end.
 */
export function expiryOf(lifeMs: number | undefined): Date | undefined {
  return lifeMs === undefined ? undefined : new Date(Date.now() + lifeMs);
}

/** Parses an option `--scope`, and adds it to the previous ones. */
export function collectScope(text: string, before: readonly string[] = []): readonly string[] {
  if (!isScope(text)) throw new InvalidArgumentError(String(scopeFault(text, [])));
  return [...before, text];
}

/**
 * Refuses unknown scopes.
 *
 * @param resources Names of the resources that scopes may contain.
 * @throws OperatorError that lists every fault.
 */
export function refuseUnknownScopes(scopes: readonly string[], resources: readonly string[]): void {
  const faults = scopes.flatMap((scope) => scopeFault(scope, resources) ?? []);
  if (faults.length > 0) throw new OperatorError(faults.join("\n"), { faults });
}
