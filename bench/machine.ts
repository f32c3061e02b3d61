import { execFileSync } from "node:child_process";
import { closeSync, fsyncSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { cpus, tmpdir, totalmem } from "node:os";
import { join } from "node:path";
import { medianOf } from "./numbers.ts";

/** Returns the facts beside the code that results depend on. */
export function describeMachine(): Readonly<Record<string, string | number>> {
  return {
    cpu: cpus()[0]?.model ?? "unknown",
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    platform: `${process.platform} ${process.arch}`,
    fsyncP50Ms: Number(fsyncMs().toFixed(3)),
  };
}

/** Returns the versions of Node, the commit and the main packages. */
export function describeVersions(): Readonly<Record<string, string>> {
  const { dependencies } = JSON.parse(readFileSync("package.json", "utf8")) as {
    readonly dependencies: Readonly<Record<string, string>>;
  };
  const packages = ["koa", "pg", "@prisma/client", "amqplib", "got"];
  return {
    commit: commit(),
    node: process.version,
    ...Object.fromEntries(packages.map((name) => [name, dependencies[name] ?? "unknown"])),
  };
}

function commit(): string {
  try {
    return execFileSync("git", ["describe", "--always", "--dirty"], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    }).trim();
  } catch {
    // Not a clone, or git is missing.
    return "unknown";
  }
}

/**
 * Returns the median time of writing 8 KiB, a page of PostgreSQL, to the disk of its data folder.
 */
function fsyncMs(): number {
  const path = join(tmpdir(), `svc-bench-fsync-${process.pid}`);
  const file = openSync(path, "w");
  const page = Buffer.alloc(8192, 1);
  const times = Array.from({ length: 200 }, () => {
    const start = performance.now();
    writeSync(file, page);
    fsyncSync(file);
    return performance.now() - start;
  });
  closeSync(file);
  rmSync(path);
  return medianOf(times);
}
