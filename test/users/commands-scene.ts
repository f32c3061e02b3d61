import { Command } from "commander";
import { expect } from "chai";
import { addUserCommands } from "../../src/users/commands.ts";
import { createTokenProvider, type TokenProvider } from "../../src/users/provider.ts";
import { testOperator } from "../support/actors.ts";
import { openCoreDatabase, type CoreDatabase } from "../support/core-database.ts";
import { createMemoryLog } from "../support/http.ts";
import { createMemoryTerminal } from "../support/memory-terminal.ts";

export type Json = Record<string, unknown>;

export interface Ran {
  readonly stdout: string;
  readonly stderr: string;
  readonly asked: readonly string[];
  /** The thrown error; undefined after a success. */
  readonly error: unknown;
}

/** The commands on a database without users. */
interface CommandsScene {
  readonly core: CoreDatabase;
  readonly tokens: TokenProvider;
  /** The setting `auth.jwt.issuer`. */
  issuer: string | undefined;
  readonly run: (args: readonly string[], answers?: readonly string[]) => Promise<Ran>;
  /** Runs a command with `--json`. */
  readonly json: <T = Json>(...args: readonly string[]) => Promise<T>;
}

/** Registers the hooks of the surrounding `describe`. */
export function useUserCommands(): CommandsScene {
  let core: CoreDatabase;
  let tokens: TokenProvider;
  let opened = 0;
  const { log } = createMemoryLog();
  const scene: CommandsScene = {
    get core() {
      return core;
    },
    get tokens() {
      return tokens;
    },
    issuer: undefined,
    async run(args, answers) {
      const terminal = createMemoryTerminal(answers);
      const program = new Command("svc-admin")
        .configureOutput({ writeOut: terminal.stdout, writeErr: terminal.stderr })
        .exitOverride();
      addUserCommands(program, {
        terminal,
        async open() {
          opened += 1;
          const { issuer } = scene;
          return {
            ...core,
            listSql: core.sql,
            log,
            actor: testOperator,
            config: { auth: { jwt: issuer === undefined ? undefined : { issuer } } },
            close: async () => void (opened -= 1),
          };
        },
      });
      const error = await program.parseAsync(args, { from: "user" }).then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
      // Nothing stays open, also after a failure.
      expect(opened).to.equal(0);
      return { ...terminal.read(), asked: terminal.asked, error };
    },
    async json<T = Json>(...args: readonly string[]) {
      const { stdout, error } = await scene.run([...args, "--json"]);
      expect(error).to.equal(undefined);
      return JSON.parse(stdout) as T;
    },
  };
  before(async () => {
    core = await openCoreDatabase();
    tokens = createTokenProvider({ ...core, log });
  });
  beforeEach(async () => {
    await core.sql("TRUNCATE svc.users RESTART IDENTITY CASCADE");
    opened = 0;
    scene.issuer = undefined;
  });
  after(() => core.close());
  return scene;
}
