import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";

/** Memory limit of a process in compose.yaml and the chart. */
export const containerBytes = 512 * 1024 ** 2;

/** Starts a process like the image does, within the memory of a container. */
export interface MemoryLimit {
  /** Returns the command that runs `node` with the arguments, within the limit. */
  commandOf(args: readonly string[]): { readonly command: string; readonly args: readonly string[] };
  /** Kind of the limit, for people. */
  readonly kind: string;
  /**
   * Returns the kernel's figures for people, page cache included, and whether it has killed the
   * process.
   */
  usage(): string;
  remove(): void;
}

/** Folders in which control groups can be made; version 1, then version 2. */
const roots = [
  {
    folder: "/sys/fs/cgroup/memory",
    limitFile: "memory.limit_in_bytes",
    usageFiles: ["memory.max_usage_in_bytes", "memory.failcnt", "memory.oom_control"],
  },
  { folder: "/sys/fs/cgroup", limitFile: "memory.max", usageFiles: ["memory.peak", "memory.events"] },
];

/**
 * Returns the command of the image, with the flags of its Dockerfile and of the first line of
 * src/bin/svc.ts.
 */
function startOf(before: string, args: readonly string[]): ReturnType<MemoryLimit["commandOf"]> {
  const script = `export MALLOC_ARENA_MAX=1; ${before} && exec "$0" --max-semi-space-size=4 "$@"`;
  return { command: "/bin/sh", args: ["-c", script, process.execPath, ...args] };
}

let groups = 0;

/**
 * Uses a control group when the machine allows one, which ends the process at the limit. Otherwise
 * limits V8's heap.
 */
export function createMemoryLimit(bytes: number): MemoryLimit {
  return byControlGroup(bytes) ?? byHeap(bytes);
}

function byControlGroup(bytes: number): MemoryLimit | undefined {
  const name = `svc-attack-${process.pid}-${(groups += 1)}`;
  for (const { folder, limitFile, usageFiles } of roots) {
    const group = `${folder}/${name}`;
    try {
      mkdirSync(group);
    } catch {
      continue;
    }
    if (!existsSync(`${group}/${limitFile}`)) {
      rmdirSync(group);
      continue;
    }
    writeFileSync(`${group}/${limitFile}`, String(bytes));
    return {
      commandOf: (args) => startOf(`echo $$ > ${group}/cgroup.procs`, args),
      kind: "control group",
      usage: () =>
        usageFiles
          .map((file) => `${file}: ${readFileSync(`${group}/${file}`, "utf8").trim().replaceAll("\n", ", ")}`)
          .join("; "),
      remove() {
        // Runs twice when a measurement has already stopped the program.
        if (existsSync(group)) rmdirSync(group);
      },
    };
  }
  return undefined;
}

/** Gives the heap half of the memory, as Node does in a container of that size. */
function byHeap(bytes: number): MemoryLimit {
  const heap = Math.floor(bytes / 2 / 1024 ** 2);
  return {
    commandOf: (args) => startOf("true", [`--max-old-space-size=${heap}`, ...args]),
    kind: `heap of ${heap} MB, and a watch on the resident set`,
    usage: () => "not counted",
    remove: () => undefined,
  };
}

/**
 * Returns the largest resident set of a process so far; undefined without /proc, or when it has
 * ended.
 */
export function peakBytes(pid: number): number | undefined {
  try {
    const kilobytes = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
    return kilobytes === undefined ? undefined : Number(kilobytes) * 1024;
  } catch {
    return undefined;
  }
}

/** Resets the value of `peakBytes` to the current memory. */
export function resetPeak(pid: number): void {
  // See proc(5): 5 resets the peak.
  writeFileSync(`/proc/${pid}/clear_refs`, "5");
}
