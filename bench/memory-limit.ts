import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";

/** What compose.yaml and the chart give a process. */
export const containerBytes = 512 * 1024 ** 2;

/**
 * Starts a process as the image does, and holds it to the memory that a container would give it.
 */
export interface MemoryLimit {
  /** What runs `node` with arguments, within the limit. */
  commandOf(args: readonly string[]): { readonly command: string; readonly args: readonly string[] };
  /** For people: how it is held. */
  readonly kind: string;
  /** For people: what the kernel counted, page cache included, and whether it has killed for it. */
  usage(): string;
  remove(): void;
}

/** Where this machine lets a process make control groups; version 1, then version 2. */
const roots = [
  {
    folder: "/sys/fs/cgroup/memory",
    limitFile: "memory.limit_in_bytes",
    usageFiles: ["memory.max_usage_in_bytes", "memory.failcnt", "memory.oom_control"],
  },
  { folder: "/sys/fs/cgroup", limitFile: "memory.max", usageFiles: ["memory.peak", "memory.events"] },
];

/** Starts as the image does, with what its Dockerfile and the first line of src/bin/svc.ts set. */
function startOf(before: string, args: readonly string[]): ReturnType<MemoryLimit["commandOf"]> {
  const script = `export MALLOC_ARENA_MAX=1; ${before} && exec "$0" --max-semi-space-size=4 "$@"`;
  return { command: "/bin/sh", args: ["-c", script, process.execPath, ...args] };
}

let groups = 0;

/**
 * By a control group where the machine allows one, which ends the process at the limit; else by the
 * limit of V8's heap.
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
        // A program that a measurement has stopped is stopped once more at the end.
        if (existsSync(group)) rmdirSync(group);
      },
    };
  }
  return undefined;
}

/** As Node itself does in a container of that size: half of it for the heap. */
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
 * The largest resident set that a process has had so far; undefined where there is no /proc, or it
 * is gone.
 */
export function peakBytes(pid: number): number | undefined {
  try {
    const kilobytes = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
    return kilobytes === undefined ? undefined : Number(kilobytes) * 1024;
  } catch {
    return undefined;
  }
}

/** Lets the next reading of `peakBytes` begin with what the process has now. */
export function resetPeak(pid: number): void {
  // See proc(5): 5 resets the peak.
  writeFileSync(`/proc/${pid}/clear_refs`, "5");
}
