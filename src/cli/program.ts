import { Command, CommanderError } from "commander";
import { openAdmin, openMigratedAdmin, type AdminContext } from "./context.ts";
import { addAuditCommand } from "./audit-command.ts";
import { describeFailure, type Terminal } from "../kit/cli-output.ts";
import { configDirOf, type Environment } from "../config/load.ts";
import { readConfiguration, type CheckedConfiguration } from "../app/configuration.ts";
import { addDeliveryCommands } from "../deliveries/commands.ts";
import { addEraseCommand } from "../deliveries/erase-command.ts";
import { addPruneCommand } from "../deliveries/prune-command.ts";
import { addWebhookCommands } from "../deliveries/webhook-commands.ts";
import { version } from "../kit/version.ts";
import { createLog } from "../telemetry/log.ts";
import { addImportCommand } from "./import-command.ts";
import { addMigrateCommand } from "./migrate-command.ts";
import { addReloadCommand } from "./reload-command.ts";
import { addStatusCommand } from "./status-command.ts";
import { addResourceCommands } from "../resources/commands.ts";
import { addSubscriptionCommands } from "../subscriptions/commands.ts";
import { unknownVariables } from "../config/unknown-variables.ts";
import { addOpenApiCommand } from "../openapi/commands.ts";
import { addUserCommands } from "../users/commands.ts";

const done = 0;
const failed = 1;
const wrongUsage = 2;

/** Environment of a run of `svc-admin`: its inputs and its terminal. */
interface AdminEnvironment extends Environment {
  readonly terminal: Terminal;
}

/** Creates the program with every command of `svc-admin`. */
export function createAdminProgram({ env, cwd, terminal }: AdminEnvironment): Command {
  // The commands print their results; the log shows only problems.
  const log = createLog({ level: "warn", destination: 2 });
  const open = (): Promise<AdminContext> => openMigratedAdmin({ env, cwd, log });
  const openAsIs = (): Promise<AdminContext> => openAdmin({ env, cwd, log });
  const read = (): Promise<CheckedConfiguration> => readConfiguration({ env, cwd, program: "admin" });
  const program = new Command("svc-admin")
    .description("Operates svc: users, tokens, migrations, mapping files, webhook deliveries.")
    .version(version)
    .addHelpText("after", "\nWorks on DATABASE_URL, or without it on the embedded database in SVC_DATA_DIR.")
    .configureOutput({ writeOut: terminal.stdout, writeErr: terminal.stderr })
    .showSuggestionAfterError()
    .showHelpAfterError("(add --help for the commands and options)")
    .exitOverride();
  addUserCommands(program, { open, terminal });
  addMigrateCommand(program, { open: openAsIs, terminal });
  addImportCommand(program, { open: openAsIs, cwd, terminal });
  addResourceCommands(program, { configDir: configDirOf({ env, cwd }), terminal });
  addReloadCommand(program, { open, read, terminal });
  addStatusCommand(program, { open, terminal });
  addOpenApiCommand(program, { read, terminal });
  addDeliveryCommands(program, { open, terminal });
  addWebhookCommands(program, { open, terminal });
  addPruneCommand(program, { open, terminal });
  addEraseCommand(program, { open, terminal });
  addSubscriptionCommands(program, { open, terminal });
  addAuditCommand(program, { open, terminal });
  return program;
}

/**
 * Runs one command, and returns the exit status. Never rejects: a failure is a message on stderr.
 *
 * @param args Arguments without the program's name.
 */
export async function runAdmin({
  args,
  ...surroundings
}: AdminEnvironment & { readonly args: readonly string[] }): Promise<number> {
  const { terminal } = surroundings;
  for (const warning of unknownVariables(surroundings)) terminal.stderr(`svc-admin: ${warning}\n`);
  try {
    await createAdminProgram(surroundings).parseAsync(args, { from: "user" });
    return done;
  } catch (error) {
    // Commander has printed the message, and ends `--help` in the same way.
    if (error instanceof CommanderError) return error.exitCode === 0 ? done : wrongUsage;
    terminal.stderr(`svc-admin: ${describeFailure(error)}\n`);
    return failed;
  }
}
