import { spawn } from "node:child_process";
import { accessSync, constants, existsSync, rmSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";

/** The path of an executable: the first of `candidates` that exists, else by `PATH`; undefined when there is none. */
export function findExecutable(name: string, candidates: readonly string[]): string | undefined {
  const onPath = (process.env["PATH"] ?? "").split(delimiter).map((folder) => join(folder, name));
  return [...candidates, ...onPath].find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Whether packages can be installed here: Debian or Ubuntu, as root. */
export function canInstall(): boolean {
  return process.getuid?.() === 0 && existsSync("/etc/debian_version") && isExecutable("/usr/bin/apt-get");
}

let installing = Promise.resolve();

/**
 * Installs Debian packages, with the progress on stderr, and keeps the services in them from starting by themselves.
 * Throws when this machine is none that it can be done on, or when apt-get fails.
 */
export async function install(packages: readonly string[]): Promise<void> {
  if (!canInstall()) {
    throw new Error(
      `The tests need a server that is not installed. Install ${packages.join(" and ")} (on Debian or Ubuntu: ` +
        `sudo apt-get install --no-install-recommends ${packages.join(" ")}), or set TEST_DATABASE_URL and ` +
        `TEST_AMQP_URL to servers that may be used for tests.`,
    );
  }
  // One after another: apt-get allows no second one beside it.
  installing = installing.then(
    () => installNow(packages),
    () => installNow(packages),
  );
  await installing;
}

async function installNow(packages: readonly string[]): Promise<void> {
  process.stderr.write(`Installing ${packages.join(" and ")} for the tests ...\n`);
  // The interface by which Debian's maintainer scripts ask whether a service may start; 101 says no. A policy that is
  // there already is the machine's own and stays.
  const policy = "/usr/sbin/policy-rc.d";
  const isPolicyOurs = !existsSync(policy);
  if (isPolicyOurs) writeFileSync(policy, "#!/bin/sh\nexit 101\n", { mode: 0o755 });
  try {
    await aptGet(["update"]);
    await aptGet(["install", "--yes", "--no-install-recommends", ...packages]);
  } finally {
    if (isPolicyOurs) rmSync(policy, { force: true });
  }
}

function aptGet(args: readonly string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn("/usr/bin/apt-get", ["-o", "DPkg::Lock::Timeout=300", ...args], {
      env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
      stdio: ["ignore", process.stderr, process.stderr],
    });
    child.once("error", reject);
    child.once("exit", (code) => {
      if (code === 0) resolve();
      else reject(new Error(`apt-get ${args.join(" ")} ended with status ${String(code)}`));
    });
  });
}
