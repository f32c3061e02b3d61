import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect } from "chai";
import { openEmbedded } from "../../src/embedded/embedded.ts";
import { version } from "../../src/kit/version.ts";
import { runAdmin } from "../../src/cli/program.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { createMemoryLog } from "../support/http.ts";
import { createMemoryTerminal } from "../support/memory-terminal.ts";
import { openCoreDatabase, type CoreDatabase } from "../support/core-database.ts";
import { binary } from "../support/program.ts";

interface Ran {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

type Env = Readonly<Record<string, string>>;

const commands = [
  "create-user",
  "users",
  "tokens",
  "migrate",
  "resources",
  "deliveries",
  "secret-key",
  "audit",
];

function emailsIn({ stdout }: Ran): readonly string[] {
  return (JSON.parse(stdout) as { email: string }[]).map(({ email }) => email);
}

describe("runAdmin", () => {
  const secretKey = randomBytes(32).toString("base64");
  let folder: string;
  let core: CoreDatabase;
  let empty: TestDatabase;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "svc-admin-"));
    await mkdir(join(folder, "config", "resources"), { recursive: true });
    core = await openCoreDatabase();
    empty = await createTestDatabase();
  });

  after(async () => {
    await core.close();
    await empty.drop();
    await rm(folder, { recursive: true, force: true });
  });

  const external = (url: string): Env => ({ DATABASE_URL: url, SVC_SECRET_KEY: secretKey });

  async function run(args: readonly string[], env: Env): Promise<Ran> {
    const terminal = createMemoryTerminal();
    const status = await runAdmin({ args, env, cwd: folder, terminal });
    return { status, ...terminal.read() };
  }

  it("shows its version, as svc does", async () => {
    expect(await run(["--version"], {})).to.deep.equal({ status: 0, stdout: `${version}\n`, stderr: "" });
  });

  it("shows every command with --help, and ends with 0", async () => {
    const { status, stdout } = await run(["--help"], {});

    expect(status).to.equal(0);
    for (const command of commands) expect(stdout).to.match(new RegExp(`^  ${command} `, "m"));
  });

  for (const args of [
    [],
    ["nonsense"],
    ["audit", "list", "--since", "2026-02-30"],
    ["users"],
    ["users", "list", "--nonsense"],
    ["users", "list", "too", "many"],
    ["tokens", "create"],
    ["deliveries", "replay", "1", "--since", "1h", "--status", "nonsense"],
  ]) {
    it(`ends with 2 and usage on stderr for ${args.length === 0 ? "no command" : args.join(" ")}`, async () => {
      const { status, stdout, stderr } = await run(args, {});

      expect(status).to.equal(2);
      expect(stdout).to.equal("");
      expect(stderr).not.to.equal("");
    });
  }

  it("suggests the intended command", async () => {
    expect((await run(["user"], {})).stderr).to.contain("Did you mean users?");
  });

  it("works on DATABASE_URL", async () => {
    const env = external(core.url);
    const created = await run(["create-user", "--name", "Ada", "--email", "ada@example.com", "--json"], env);
    const listed = await run(["users", "list", "--json"], env);

    expect(created.status).to.equal(0);
    expect(listed.status).to.equal(0);
    expect(emailsIn(listed)).to.deep.equal(["ada@example.com"]);
  });

  it("ends with 1 and one message on stderr when a command fails", async () => {
    expect(await run(["users", "disable", "999"], external(core.url))).to.deep.equal({
      status: 1,
      stdout: "",
      stderr: "svc-admin: There is no user with the id 999. See: svc-admin users list\n",
    });
  });

  it("names `svc-admin migrate` when the database has none of the tables, and creates none", async () => {
    const { status, stderr } = await run(["users", "list"], external(empty.url));

    expect(status).to.equal(1);
    expect(stderr).to.contain("Make them with: svc-admin migrate");
    expect((await run(["users", "list"], external(empty.url))).status).to.equal(1);
  });

  it("ends with 1 without the password when the database does not answer", async () => {
    const { status, stderr } = await run(["users", "list"], {
      ...external("postgres://ada:hunter2@127.0.0.1:1/svc"),
    });

    expect(status).to.equal(1);
    expect(stderr).to.match(/^svc-admin: The database does not answer: .*ECONNREFUSED/);
    expect(stderr).not.to.contain("hunter2");
    expect(stderr).not.to.contain("    at ");
  });

  it("shows the default of --timeout in seconds", async () => {
    const { stdout } = await run(["reload", "--help"], {});

    expect(stdout).to.contain("--timeout <seconds>").and.to.contain("(default: 60)");
  });

  it("names an unknown variable, and continues", async () => {
    const { status, stderr } = await run(["resources", "check"], { SVC_CONFIG_DRI: "elsewhere" });

    expect(status).to.equal(0);
    expect(stderr).to.equal(
      "svc-admin: SVC_CONFIG_DRI is not a variable of svc, and is ignored; did you mean SVC_CONFIG_DIR?\n",
    );
  });

  it("ends with 1 and every fault when a setting is bad", async () => {
    const { status, stderr } = await run(["users", "list"], {
      ...external(core.url),
      SVC_PORT: "many",
      SVC_LOG_LEVEL: "loud",
    });

    expect(status).to.equal(1);
    expect(stderr).to.contain("SVC_PORT").and.to.contain("SVC_LOG_LEVEL");
  });

  // Both share one data folder: to fill another takes seconds.
  describe("on the embedded database", () => {
    it("creates the database and its tables when they are missing, and finds them again", async () => {
      const env = { SVC_DATA_DIR: join(folder, "data") };
      const { status, stdout } = await run(
        ["create-user", "--name", "Ada", "--email", "ada@example.com"],
        env,
      );

      expect(status).to.equal(0);
      expect(stdout).to.match(/svc_[0-9A-Za-z]{43}/);
      expect(emailsIn(await run(["users", "list", "--json"], env))).to.deep.equal(["ada@example.com"]);
    }).timeout(120_000);

    it("works on it as a second process", async () => {
      const env = { SVC_DATA_DIR: join(folder, "data") };
      const running = await openEmbedded({ dataDir: env.SVC_DATA_DIR, log: createMemoryLog().log });
      try {
        const child = await spawnAdmin(["create-user", "--name", "Ben", "--email", "ben@example.com"], env);

        expect(child.status).to.equal(0);
        expect(child.stdout).to.match(/svc_[0-9A-Za-z]{43}/);
        expect(emailsIn(await run(["users", "list", "--json"], env))).to.include("ben@example.com");
      } finally {
        await running.close();
      }
    }).timeout(120_000);
  });

  describe("as a process", () => {
    it("ends with 2 for a missing option without a terminal, instead of waiting", async () => {
      const { status, stdout, stderr } = await spawnAdmin(["create-user", "--name", "Ada"], {
        ...external(core.url),
      });

      expect(status).to.equal(2);
      expect(stdout).to.equal("");
      expect(stderr).to.contain("missing --email");
    }).timeout(60_000);

    it("ends with 1 and a message without a stack for faults in service.yaml", async () => {
      const configDir = join(folder, "broken");
      await mkdir(configDir);
      await writeFile(join(configDir, "service.yaml"), "http: { port: many }\n");

      const { status, stdout, stderr } = await spawnAdmin(["users", "list"], { SVC_CONFIG_DIR: configDir });

      expect(status).to.equal(1);
      expect(stdout).to.equal("");
      expect(stderr)
        .to.match(/^svc-admin: /)
        .and.to.contain("service.yaml");
      expect(stderr).not.to.contain("    at ");
    }).timeout(60_000);
  });

  /** Runs the installed program, without a terminal. */
  async function spawnAdmin(args: readonly string[], env: Env): Promise<Ran> {
    const child = spawn(process.execPath, [binary("svc-admin"), ...args], {
      env: { PATH: process.env["PATH"], SVC_CONFIG_DIR: join(folder, "config"), ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const ended = new Promise<number | null>((resolve, reject) => {
      child.once("error", reject);
      child.once("close", resolve);
    });
    const [stdout, stderr, status] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
    return { status, stdout, stderr };
  }
});
