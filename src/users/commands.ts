import { InvalidArgumentError, type Command } from "commander";
import type { Pool } from "pg";
import type { Actor } from "../kit/actor.ts";
import {
  printDone,
  printRow,
  printRows,
  withOpened,
  type OutputRow,
  type Terminal,
} from "../kit/cli-output.ts";
import { parseDuration, parseId } from "../kit/cli-arguments.ts";
import { formatDateTime } from "../kit/date-time.ts";
import { createTransact, type Sql } from "../db/sql.ts";
import { OperatorError } from "../kit/errors.ts";
import { isScope, scopeFault } from "../kit/scopes.ts";
import type { Log } from "../telemetry/log.ts";
import { emailFault, nameFault, subjectFault } from "./input.ts";
import { createTokenProvider, type TokenInfo, type TokenProvider } from "./provider.ts";
import { createUserStore, type User, type UserStore } from "./store.ts";

/** The part of an open database that the commands need. */
export interface UserCommandsContext {
  readonly database: { readonly pool: Pool };
  readonly sql: Sql;
  readonly log: Log;
  /** Who runs the command. */
  readonly actor: Actor;
  readonly config: { readonly auth: { readonly jwt?: { readonly issuer: string } | undefined } };
  close(): Promise<void>;
}

/** What the commands open and write to. */
export interface UserCommandsOptions {
  readonly open: () => Promise<UserCommandsContext>;
  readonly terminal: Terminal;
}

interface Json {
  readonly json?: boolean;
}

const defaultTokenName = "default";
const shownOnce = "This is the only time that the token is shown. Keep it in a safe place.\n";

/** Adds `create-user`, `users` and `tokens`. */
export function addUserCommands(program: Command, options: UserCommandsOptions): void {
  addCreateUser(program, options);
  addUsers(program, options);
  addTokens(program, options);
}

function addCreateUser(program: Command, { open, terminal }: UserCommandsOptions): void {
  interface Options extends Json {
    readonly name?: string;
    readonly email?: string;
    readonly admin?: true;
    readonly token: boolean;
    readonly tokenName?: string;
    readonly scope?: readonly string[];
    readonly expiresIn?: number;
    readonly subject?: string;
  }
  const command = program.command("create-user").description("create an API user, and print its token once");
  command
    .option("--name <name>", "name of the user", parser(nameFault))
    .option("--email <address>", "e-mail address of the user", parser(emailFault))
    .option("--admin", "make the user an admin")
    .option("--no-token", "create no token")
    .option("--token-name <name>", `name of the token (default: ${defaultTokenName})`, parser(nameFault))
    .option("--scope <scope>", "what the token may do; repeatable (default: *)", collectScope)
    .option(
      "--expires-in <duration>",
      "life of the token, such as 365d, 12h or 30m (default: no end)",
      parseDuration,
    )
    .option("--subject <subject>", "whose JWTs of auth.jwt.issuer are the user's", parser(subjectFault))
    .option("--json", "print JSON")
    .action(async (given: Options) => {
      if (!given.token && [given.tokenName, given.expiresIn, given.scope].some((one) => one !== undefined)) {
        command.error("error: --token-name, --scope and --expires-in cannot be used with --no-token");
      }
      const missing = [
        ...(given.name === undefined ? ["--name"] : []),
        ...(given.email === undefined ? ["--email"] : []),
      ];
      if (terminal.ask === undefined && missing.length > 0) {
        command.error(`error: missing ${missing.join(" and ")}, and there is no terminal to ask on`);
      }
      const name = given.name ?? (await ask(terminal, { question: "Name: ", faultOf: nameFault }));
      const email = given.email ?? (await ask(terminal, { question: "E-mail: ", faultOf: emailFault }));

      await withUsers(open, async ({ users, tokens, resources, issuer }) => {
        const { subject, scope: scopes } = given;
        refuseUnknownScopes(scopes ?? [], scopes === undefined ? [] : await resources());
        if (subject !== undefined && issuer === undefined)
          throw new OperatorError("--subject needs the setting auth.jwt.issuer, whose JWTs are meant.");
        const jwt = subject === undefined || issuer === undefined ? {} : { subject, issuer };
        const answer = await users.create({ name, email, isAdmin: given.admin === true, ...jwt });
        if (answer.kind !== "created") {
          const taken = answer.kind === "email_taken" ? `e-mail address ${email}` : `subject ${subject}`;
          throw new OperatorError(`There is already a user with the ${taken}. See: svc-admin users list`);
        }
        const { id, isAdmin } = answer.user;
        const row = { id, name, email, is_admin: isAdmin };
        const json = given.json === true;
        if (!given.token) return printRow(terminal, row, { json });
        const token = await tokens.issue({
          userId: id,
          name: given.tokenName ?? defaultTokenName,
          scopes,
          expiresAt: expiryOf(given.expiresIn),
        });
        const added = {
          token: token.token,
          token_id: token.id,
          token_name: token.name,
          token_expires_at: formatDateTime(token.expiresAt),
        };
        printRow(terminal, { ...row, ...added }, { json });
        terminal.stderr(shownOnce);
      });
    });
}

function addUsers(program: Command, { open, terminal }: UserCommandsOptions): void {
  const group = program.command("users").description("list, disable and enable API users");
  group
    .command("list")
    .description("list the users")
    .option("--json", "print JSON")
    .action(async ({ json = false }: Json) => {
      const rows = await withUsers(open, async ({ users }) => (await users.list()).map(userRow));
      printRows(terminal, rows, { json, empty: "There are no users. Make one with: svc-admin create-user" });
    });
  for (const [name, isDisabled, effect] of [
    ["disable", true, "is disabled: its tokens answer 401, and its webhooks wait"],
    ["enable", false, "is enabled"],
  ] as const) {
    group
      .command(name)
      .description(
        isDisabled ? "make a user's tokens answer 401" : "make a disabled user's tokens work again",
      )
      .argument("<id>", "id of the user", parseId)
      .option("--json", "print JSON")
      .action(async (id: number, { json = false }: Json) => {
        const user = await withUsers(open, ({ users }) => users.setDisabled(id, isDisabled));
        if (user === undefined) throw unknownUser(id);
        printDone(terminal, {
          row: userRow(user),
          sentence: `The user ${id} (${user.name}, ${user.email}) ${effect}.`,
          json,
        });
      });
  }
}

function addTokens(program: Command, { open, terminal }: UserCommandsOptions): void {
  const group = program.command("tokens").description("create, list and revoke access tokens");
  group
    .command("create")
    .description("create a token for a user, and print it once")
    .requiredOption("--user <id>", "id of the user", parseId)
    .option("--name <name>", "name of the token", parser(nameFault), defaultTokenName)
    .option("--scope <scope>", "what the token may do; repeatable (default: *)", collectScope)
    .option(
      "--expires-in <duration>",
      "life of the token, such as 90d, 12h or 30m (default: no end)",
      parseDuration,
    )
    .option("--json", "print JSON")
    .action(
      async ({
        user,
        name,
        scope: scopes,
        expiresIn,
        json = false,
      }: Json & { user: number; name: string; scope?: readonly string[]; expiresIn?: number }) => {
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
      },
    );
  group
    .command("list")
    .description("list the tokens of a user, or of all users")
    .option("--user <id>", "id of the user (default: all users)", parseId)
    .option("--json", "print JSON")
    .action(async ({ user, json = false }: Json & { user?: number }) => {
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
    .action(async (id: number, { json = false }: Json) => {
      const token = await withUsers(open, ({ tokens }) => tokens.revoke(id));
      if (token === undefined) throw new OperatorError(`There is no token with the id ${id}.`);
      printDone(terminal, {
        row: tokenRow(token),
        sentence: `The token ${id} (${token.name}) is revoked.`,
        json,
      });
    });
}

function withUsers<T>(
  open: UserCommandsOptions["open"],
  work: (rooms: {
    readonly users: UserStore;
    readonly tokens: TokenProvider;
    /** Names of the resources that `svc-admin migrate` has installed. */
    readonly resources: () => Promise<readonly string[]>;
    /** Whose JWTs are taken; undefined: none are. */
    readonly issuer: string | undefined;
  }) => Promise<T>,
): Promise<T> {
  return withOpened(open, ({ database: { pool }, sql, log, actor, config }) => {
    const transact = createTransact(pool);
    return work({
      issuer: config.auth.jwt?.issuer,
      users: createUserStore({ sql, transact, actor }),
      tokens: createTokenProvider({ sql, transact, log, actor }),
      async resources() {
        const installed = await sql<{ name: string }>("SELECT name FROM svc.installed_resources");
        return installed.map(({ name }) => name);
      },
    });
  });
}

function userRow(user: User): OutputRow {
  return {
    id: user.id,
    name: user.name,
    email: user.email,
    is_admin: user.isAdmin,
    disabled_at: formatDateTime(user.disabledAt),
    created_at: formatDateTime(user.createdAt),
  };
}

function tokenRow(token: TokenInfo): OutputRow {
  return {
    id: token.id,
    user_id: token.userId,
    name: token.name,
    scopes: token.scopes,
    created_at: formatDateTime(token.createdAt),
    last_used_at: formatDateTime(token.lastUsedAt),
    expires_at: formatDateTime(token.expiresAt),
    revoked_at: formatDateTime(token.revokedAt),
  };
}

function unknownUser(id: number): OperatorError {
  return new OperatorError(`There is no user with the id ${id}. See: svc-admin users list`);
}

function expiryOf(lifeMs: number | undefined): Date | undefined {
  return lifeMs === undefined ? undefined : new Date(Date.now() + lifeMs);
}

/** Asks until the answer is valid. */
async function ask(
  { ask: askOnce, stderr }: Terminal,
  {
    question,
    faultOf,
  }: { readonly question: string; readonly faultOf: (text: string) => string | undefined },
): Promise<string> {
  for (;;) {
    const answer = ((await askOnce?.(question)) ?? "").trim();
    const fault = faultOf(answer);
    if (fault === undefined) return answer;
    stderr(`${fault}\n`);
  }
}

/** Adds a scope to those of the options before. */
function collectScope(text: string, before: readonly string[] = []): readonly string[] {
  if (!isScope(text)) throw new InvalidArgumentError(String(scopeFault(text, [])));
  return [...before, text];
}

function refuseUnknownScopes(scopes: readonly string[], resources: readonly string[]): void {
  const faults = scopes.flatMap((scope) => scopeFault(scope, resources) ?? []);
  if (faults.length > 0) throw new OperatorError(faults.join("\n"), { faults });
}

/** Makes a parser of option values that returns them unchanged when they are valid. */
function parser(faultOf: (text: string) => string | undefined): (text: string) => string {
  return (text) => {
    const fault = faultOf(text.trim());
    if (fault !== undefined) throw new InvalidArgumentError(fault);
    return text.trim();
  };
}
