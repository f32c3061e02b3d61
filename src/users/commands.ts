import type { Command } from "commander";
import { parseId } from "../kit/cli-arguments.ts";
import { printDone, printRows, type JsonOption, type OutputRow } from "../kit/cli-output.ts";
import { withUsers, type UserCommandsOptions } from "./command-context.ts";
import { addCreateUserCommand } from "./create-user-command.ts";
import { presentUser } from "./present.ts";
import { unknownUser } from "./provider.ts";
import type { User } from "./store.ts";
import { addTokenCommands } from "./token-commands.ts";

export function addUserCommands(program: Command, options: UserCommandsOptions): void {
  addCreateUserCommand(program, options);
  addUsers(program, options);
  addTokenCommands(program, options);
}

function addUsers(program: Command, { open, terminal }: UserCommandsOptions): void {
  const group = program.command("users").description("list, disable and enable API users");
  group
    .command("list")
    .description("list the users")
    .option("--json", "print JSON")
    .action(async ({ json = false }: JsonOption) => {
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
      .action(async (id: number, { json = false }: JsonOption) => {
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

function userRow(user: User): OutputRow {
  const { is_disabled: _whether, subject: _subject, updated_at: _updated, ...row } = presentUser(user);
  return row;
}
