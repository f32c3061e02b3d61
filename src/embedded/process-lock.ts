import { readFile, rm, stat, writeFile } from "node:fs/promises";
import { codeOf } from "../kit/errors.ts";

/** The process that a lock file names. */
export interface Holder {
  readonly pid: number;
  /** From /proc: tells a process from a later one with the same pid, which is the rule in containers. Null where there is no /proc. */
  readonly startedAt: string | null;
  /** What the holder wants others to know. */
  readonly note: string;
}

export type Acquired =
  | { readonly kind: "acquired"; release(): Promise<void> }
  /** Undefined: taken this moment, or being given up. */
  | { readonly kind: "held"; readonly holder: Holder | undefined };

const abandonedAfterMs = 5000;

/** Takes the lock file unless a live process holds it. The lock of a process that is gone is broken, by one process only. */
export async function acquireLock(file: string, note: string): Promise<Acquired> {
  const mine: Holder = { pid: process.pid, startedAt: await startOf(process.pid), note };
  const text = JSON.stringify(mine);
  if (await createFile(file, text))
    return {
      kind: "acquired",
      async release() {
        if ((await readText(file)) === text) await rm(file, { force: true });
      },
    };
  const found = await readText(file);
  const holder = holderOf(found);
  const isHeld = holder === undefined ? !(await isOld(file)) : await isAlive(holder);
  if (found !== undefined && !isHeld && (await breakLock(file, found))) return acquireLock(file, note);
  return { kind: "held", holder };
}

/** Undefined when nobody holds the lock. The process named may be gone. */
export async function readHolder(file: string): Promise<Holder | undefined> {
  return holderOf(await readText(file));
}

/**
 * Two processes that find the same dead lock must not both remove it: the slower one would remove the new lock
 * of the faster. So whoever removes it holds a second file meanwhile, and looks again. False when another process is at it.
 */
async function breakLock(file: string, found: string): Promise<boolean> {
  const guard = `${file}.break`;
  if (!(await createFile(guard, ""))) {
    if (await isOld(guard)) await rm(guard, { force: true });
    return false;
  }
  try {
    if ((await readText(file)) === found) await rm(file, { force: true });
    return true;
  } finally {
    await rm(guard, { force: true });
  }
}

async function isAlive({ pid, startedAt }: Holder): Promise<boolean> {
  try {
    process.kill(pid, 0);
  } catch (error) {
    // EPERM: alive, and another user's.
    if (codeOf(error) === "ESRCH") return false;
  }
  const now = await startOf(pid);
  return startedAt === null || now === null || now === startedAt;
}

async function startOf(pid: number): Promise<string | null> {
  const line = await readText(`/proc/${pid}/stat`);
  // The command's name, in parentheses, may hold anything; the start time is the 20th item after it.
  return line?.slice(line.lastIndexOf(")") + 2).split(" ")[19] ?? null;
}

function holderOf(text: string | undefined): Holder | undefined {
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text) as Holder;
  } catch {
    // Created and not written yet, or cut short by a full disk.
    return undefined;
  }
}

/** False when it is there already. */
async function createFile(file: string, text: string): Promise<boolean> {
  try {
    await writeFile(file, text, { flag: "wx", mode: 0o600 });
    return true;
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false;
    throw error;
  }
}

async function readText(file: string): Promise<string | undefined> {
  return readFile(file, "utf8").catch(() => undefined);
}

async function isOld(file: string): Promise<boolean> {
  return stat(file).then(
    ({ mtimeMs }) => mtimeMs < Date.now() - abandonedAfterMs,
    () => false,
  );
}
