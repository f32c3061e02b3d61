import { readFile, rm, stat, writeFile } from "node:fs/promises";
import { codeOf } from "../kit/errors.ts";

/** The process that a lock file names. */
export interface Holder {
  readonly pid: number;
  /**
   * Start time from /proc. Distinguishes a process from a later one with the same pid, which is
   * common in containers. Null without /proc.
   */
  readonly startedAt: string | null;
  /** A text of the holder for other processes. */
  readonly note: string;
}

/** The result of taking a lock. */
type Acquired =
  | { readonly kind: "acquired"; release(): Promise<void> }
  /** The holder; undefined while another process takes or releases the lock. */
  | { readonly kind: "held"; readonly holder: Holder | undefined };

const abandonedAfterMs = 5000;

/**
 * Takes the lock file unless a live process holds it. Breaks the lock of a dead process, in one
 * process only.
 */
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

/** Returns the process that the lock file names; it may be dead. Undefined without a lock. */
export async function readHolder(file: string): Promise<Holder | undefined> {
  return holderOf(await readText(file));
}

/**
 * Removes the lock of a dead process. Returns false when another process does it.
 *
 * Two processes that find the same dead lock must not both remove it: the slower one would remove
 * the new lock of the faster. The remover therefore holds a second file, and reads the lock again.
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
    // EPERM: the process lives, and belongs to another user.
    if (codeOf(error) === "ESRCH") return false;
  }
  const now = await startOf(pid);
  return startedAt === null || now === null || now === startedAt;
}

async function startOf(pid: number): Promise<string | null> {
  const line = await readText(`/proc/${pid}/stat`);
  // The command's name, in parentheses, may contain any character. The start time is the 20th item
  // after it.
  return line?.slice(line.lastIndexOf(")") + 2).split(" ")[19] ?? null;
}

function holderOf(text: string | undefined): Holder | undefined {
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text) as Holder;
  } catch {
    // The file is created but not written yet, or was cut short by a full disk.
    return undefined;
  }
}

/** Creates a file. Returns false when it exists. */
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
