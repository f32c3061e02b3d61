import type { Command } from "commander";
import { parseDuration, parseText } from "../kit/cli-arguments.ts";
import { printRow, type JsonOption, type Terminal } from "../kit/cli-output.ts";
import { formatDateTime } from "../kit/date-time.ts";
import { OperatorError } from "../kit/errors.ts";
import { withUsers, type OpenedUsers, type UserCommandsOptions } from "./command-context.ts";
import { emailFault, nameFault, subjectFault } from "./input.ts";
import type { IssuedToken } from "./provider.ts";
import type { User } from "./store.ts";
import {
  collectScope,
  defaultTokenName,
  expiryOf,
  refuseUnknownScopes,
  shownOnce,
} from "./token-commands.ts";

interface Options extends JsonOption {
  readonly name?: string;
  readonly email?: string;
  readonly admin?: true;
  readonly token: boolean;
  readonly tokenName?: string;
  readonly scope?: readonly string[];
  readonly expiresIn?: number;
  readonly subject?: string;
}

export function addCreateUserCommand(program: Command, { open, terminal }: UserCommandsOptions): void {
  const command = program.command("create-user").description("create an API user, and print its token once");
  command
    .option("--name <name>", "name of the user", parseText(nameFault))
    .option("--email <address>", "e-mail address of the user", parseText(emailFault))
    .option("--admin", "make the user an admin")
    .option("--no-token", "create no token")
    .option("--token-name <name>", `name of the token (default: ${defaultTokenName})`, parseText(nameFault))
    .option("--scope <scope>", "what the token may do; repeatable (default: *)", collectScope)
    .option(
      "--expires-in <duration>",
      "life of the token, such as 365d, 12h or 30m (default: no end)",
      parseDuration,
    )
    .option("--subject <subject>", "whose JWTs of auth.jwt.issuer are the user's", parseText(subjectFault))
    .option("--json", "print JSON")
    .action(async (given: Options) => {
      if (!given.token && [given.tokenName, given.expiresIn, given.scope].some((one) => one !== undefined)) {
        command.error("error: --token-name, --scope and --expires-in cannot be used with --no-token");
      }
      const missing = (["name", "email"] as const).filter((key) => given[key] === undefined);
      if (terminal.ask === undefined && missing.length > 0) {
        command.error(`error: missing --${missing.join(" and --")}, and there is no terminal to ask on`);
      }
      const name = given.name ?? (await ask(terminal, "Name: ", nameFault));
      const email = given.email ?? (await ask(terminal, "E-mail: ", emailFault));
      await withUsers(open, (opened) => createUser(opened, terminal, { ...given, name, email }));
    });
}

type Given = Options & { readonly name: string; readonly email: string };

async function createUser(opened: OpenedUsers, terminal: Terminal, given: Given): Promise<void> {
  const { scope: scopes, json = false } = given;
  refuseUnknownScopes(scopes ?? [], scopes === undefined ? [] : await opened.resources());
  if (given.subject !== undefined && opened.issuer === undefined)
    throw new OperatorError("--subject needs the setting auth.jwt.issuer, whose JWTs are meant.");
  const { user, token } = await makeUser(opened, given);
  const { id, name, email, isAdmin } = user;
  const row = { id, name, email, is_admin: isAdmin };
  if (token === undefined) return printRow(terminal, row, { json });
  const added = {
    token: token.token,
    token_id: token.id,
    token_name: token.name,
    token_expires_at: formatDateTime(token.expiresAt),
  };
  printRow(terminal, { ...row, ...added }, { json });
  terminal.stderr(shownOnce);
}

/**
 * Creates both the user and its token, or neither. Otherwise a retry would be refused because the
 * user exists.
 */
async function makeUser(
  { transact, users, tokens, issuer }: OpenedUsers,
  { name, email, subject, scope: scopes, ...given }: Given,
): Promise<{ readonly user: User; readonly token: IssuedToken | undefined }> {
  const jwt = subject === undefined || issuer === undefined ? {} : { subject, issuer };
  const wanted = { name, email, isAdmin: given.admin === true, ...jwt };
  return transact(async (transaction) => {
    const answer = await users.create(wanted, undefined, transaction);
    if (answer.kind !== "created") {
      const taken = answer.kind === "email_taken" ? `e-mail address ${email}` : `subject ${subject}`;
      throw new OperatorError(`There is already a user with the ${taken}. See: svc-admin users list`);
    }
    const { user } = answer;
    if (!given.token) return { user, token: undefined };
    const tokenName = given.tokenName ?? defaultTokenName;
    const expiresAt = expiryOf(given.expiresIn);
    const token = await tokens.issue({ userId: user.id, name: tokenName, scopes, expiresAt, transaction });
    return { user, token };
  });
}

/** Repeats the question until the answer is valid. */
async function ask(
  { ask: askOnce, stderr }: Terminal,
  question: string,
  faultOf: (text: string) => string | undefined,
): Promise<string> {
  for (;;) {
    const answer = ((await askOnce?.(question)) ?? "").trim();
    const fault = faultOf(answer);
    if (fault === undefined) return answer;
    stderr(`${fault}\n`);
  }
}
