import { readFileSync } from "node:fs";

/** USER_HZ: Linux's unit of CPU time for programs, the same on every platform. */
const ticksPerSecond = 100;

/**
 * Returns the CPU time that a process has used so far, all threads, user and system, in µs. NaN
 * without /proc.
 */
export function processCpuMicros(pid: number): number {
  return microsOf(statFields(pid).slice(0, 2));
}

/**
 * Returns the same for a process with its children, including ended ones: PostgreSQL has one per
 * connection.
 */
export function familyCpuMicros(pid: number): number {
  const children = readText(`/proc/${pid}/task/${pid}/children`).split(" ").filter(Boolean);
  // A child may end meanwhile, and then counts for its parent.
  const living = children.map((child) => familyCpuMicros(Number(child)) || 0);
  return living.reduce((sum, micros) => sum + micros, microsOf(statFields(pid)));
}

/** Returns utime, stime, cutime and cstime. */
function statFields(pid: number): readonly number[] {
  const text = readText(`/proc/${pid}/stat`);
  // The second field, the name in parentheses, may contain spaces.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return [11, 12, 13, 14].map((place) => Number(fields[place]));
}

function microsOf(ticks: readonly number[]): number {
  return ticks.reduce((sum, count) => sum + count, 0) * (1_000_000 / ticksPerSecond);
}

/** Returns the resident memory of a process in MB. NaN without /proc. */
export function processMemoryMb(pid: number): number {
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readText(`/proc/${pid}/status`))?.[1]) / 1024;
}

/** Returns no text when the system is not Linux, or the process has ended. */
function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
