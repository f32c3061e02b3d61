import { readFileSync } from "node:fs";

/** USER_HZ: Linux's unit of CPU time for programs, the same on every platform. */
const ticksPerSecond = 100;

/**
 * Returns the CPU time that a process has used so far, all threads, user and system, in µs.
 * Undefined without /proc.
 */
export function processCpuMicros(pid: number): number | undefined {
  const fields = statFields(pid);
  return fields && microsOf(fields.slice(0, 2));
}

/**
 * Returns the same for a process with its children, including ended ones: PostgreSQL has one per
 * connection.
 */
export function familyCpuMicros(pid: number): number | undefined {
  const own = statFields(pid);
  if (own === undefined) return undefined;
  const children = readText(`/proc/${pid}/task/${pid}/children`)?.trim() ?? "";
  const living = children
    .split(" ")
    .map((child) => (child === "" ? 0 : (familyCpuMicros(Number(child)) ?? 0)));
  return living.reduce((sum, micros) => sum + micros, microsOf(own));
}

/** Returns utime, stime, cutime and cstime. */
function statFields(pid: number): readonly number[] | undefined {
  const text = readText(`/proc/${pid}/stat`);
  // The second field, the name in parentheses, may contain spaces.
  return text
    ?.slice(text.lastIndexOf(")") + 2)
    .split(" ")
    .slice(11, 15)
    .map(Number);
}

function microsOf(ticks: readonly number[]): number {
  return ticks.reduce((sum, count) => sum + count, 0) * (1_000_000 / ticksPerSecond);
}

/** Returns the resident memory of a process in MB. Undefined without /proc. */
export function processMemoryMb(pid: number): number | undefined {
  const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(readText(`/proc/${pid}/status`) ?? "")?.[1];
  return kilobytes === undefined ? undefined : Number(kilobytes) / 1024;
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    // The system is not Linux, or the process has ended.
    return undefined;
  }
}
