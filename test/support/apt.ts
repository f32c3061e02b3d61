import { spawn } from "node:child_process";
import { accessSync, constants, existsSync } from "node:fs";
import { delimiter, join } from "node:path";

/**
 * Returns the path of an executable: the first existing candidate, otherwise the one in `PATH`;
 * undefined without one.
 */
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

/** Returns whether packages can be installed: on Debian or Ubuntu, as root. */
export function canInstall(): boolean {
  return process.getuid?.() === 0 && existsSync("/etc/debian_version") && isExecutable("/usr/bin/apt-get");
}

/**
 * Installs the arguments. Holds a lock meanwhile: portions of the tests run at the same time,
 * and apt-get does not wait for another process that updates its lists. policy-rc.d is the
 * interface by which Debian's maintainer scripts ask whether a service may start; 101 means no. An
 * existing policy belongs to the machine and stays.
 */
const script = `set -e
exec 9>/tmp/svc-tests-install.lock
flock 9
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
  trap 'rm -f $policy' EXIT
  printf '#!/bin/sh\\nexit 101\\n' >$policy
  chmod 755 $policy
fi
export DEBIAN_FRONTEND=noninteractive
apt-get -o DPkg::Lock::Timeout=300 update 9>&-
apt-get -o DPkg::Lock::Timeout=300 install --yes --no-install-recommends "$@" 9>&-`;

/**
 * Installs Debian packages, with the progress on stderr, and keeps their services from starting.
 * Throws when this machine cannot install them, or when apt-get fails.
 */
export async function install(packages: readonly string[]): Promise<void> {
  if (!canInstall()) {
    throw new Error(
      `The tests need a server that is not installed. Install ${packages.join(" and ")} (on Debian or Ubuntu: ` +
        `sudo apt-get install --no-install-recommends ${packages.join(" ")}), or set TEST_DATABASE_URL and ` +
        `TEST_AMQP_URL to servers that may be used for tests.`,
    );
  }
  process.stderr.write(`Installing ${packages.join(" and ")} for the tests ...\n`);
  const child = spawn("/bin/sh", ["-c", script, "sh", ...packages], {
    stdio: ["ignore", process.stderr, process.stderr],
  });
  const code = await new Promise((resolve, reject) => child.once("error", reject).once("exit", resolve));
  if (code !== 0)
    throw new Error(`The installation of ${packages.join(" and ")} ended with status ${String(code)}`);
}
