import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { execFile } from "node:child_process";
import { freePort, makeFolder, removeFolder } from "../support/private-process.ts";
import { tryAdmin, writeConfiguration, type Configuration } from "../support/program.ts";
import { notesYaml } from "../support/notes.ts";

describe("a start on the embedded database that cannot be", function () {
  this.timeout(30_000);
  let folder: string;
  let configuration: Configuration;
  let env: Readonly<Record<string, string>>;

  before(async () => {
    folder = makeFolder("start-faults");
    configuration = writeConfiguration({ service: "", resources: { "notes.yaml": notesYaml } });
    env = {
      ...configuration.env,
      SVC_METRICS_HOST: "127.0.0.1",
      SVC_METRICS_PORT: String(await freePort()),
      SVC_PORT: String(await freePort()),
    };
  });
  after(() => {
    configuration.dispose();
    removeFolder(folder);
  });

  /** Runs `svc all`, and kills it after 10 s: the code is null then. */
  function start(
    changes: Readonly<Record<string, string>>,
  ): Promise<{ readonly code: unknown; readonly stdout: string; readonly stderr: string }> {
    return new Promise((settle) => {
      execFile(
        process.execPath,
        ["dist/bin/svc.js", "all"],
        { env: { PATH: process.env["PATH"], ...env, ...changes }, timeout: 10_000, killSignal: "SIGKILL" },
        (error, stdout, stderr) => settle({ code: error?.code ?? null, stdout, stderr }),
      );
    });
  }

  it("ends at once with 1 and a line that names SVC_DATA_DIR, when the data folder is not writable", async () => {
    const file = join(folder, "file");
    writeFileSync(file, "");

    for (const path of [file, join(file, "data"), "/proc/svc-data"]) {
      const { code, stderr } = await start({ SVC_DATA_DIR: path });

      expect(code, path).to.equal(1);
      expect(stderr).to.match(
        /^svc: The data folder .+ \(dataDir, SVC_DATA_DIR\) cannot be written to: .+\n$/,
      );
      expect(stderr).to.include(path);
    }
  });

  it("says before that where it looked for a missing service.yaml", async () => {
    const configDir = join(folder, "without");
    mkdirSync(join(configDir, "resources"), { recursive: true });

    const { stdout } = await start({ SVC_CONFIG_DIR: configDir, SVC_DATA_DIR: "/proc/svc-data" });

    expect(stdout).to.include(`"path":"${join(configDir, "service.yaml")}","msg":"there is no such file`);
  });

  it("does the same with a given secret key, and for svc-admin", async () => {
    const given = { SVC_DATA_DIR: "/proc/svc-data", SVC_SECRET_KEY: Buffer.alloc(32, 7).toString("base64") };
    const { code, stderr } = await start(given);
    const admin = await tryAdmin(["users", "list"], { ...env, ...given });

    expect([code, admin.code]).to.deep.equal([1, 1]);
    for (const text of [stderr, admin.stderr])
      expect(text).to.include("The data folder /proc/svc-data (dataDir, SVC_DATA_DIR) cannot be written to");
  });

  it("warns once before that when page links could lead to any host, and not on loopback", async () => {
    const { stdout } = await start({ SVC_HOST: "0.0.0.0", SVC_DATA_DIR: "/proc/svc-data" });
    const quiet = await start({ SVC_DATA_DIR: "/proc/svc-data" });

    expect(stdout.match(/"event":"hosts\.open"/g)).to.have.length(1);
    expect(stdout).to.include("http.hosts");
    expect(quiet.stdout).not.to.include("hosts.open");
  });
});
