import { randomBytes } from "node:crypto";
import { mkdir, open, rm, stat, statfs } from "node:fs/promises";
import { dirname, join } from "node:path";
import { messageOf, OperatorError } from "../kit/errors.ts";

/** Large enough to detect a full disk, on which an empty file can still be created. */
const trialBytes = 64 * 1024;

/**
 * Creates a missing data folder, and writes a trial file. Without this check the embedded database
 * fails late, with an unclear message.
 *
 * @param neededBytes Space that the caller is about to fill.
 * @throws OperatorError that names the setting, the folder and the remedy.
 */
export async function prepareDataDir(
  dataDir: string,
  { neededBytes = 0 }: { readonly neededBytes?: number } = {},
): Promise<void> {
  try {
    await makeFolder(dataDir);
    await writeTrialFile(dataDir);
  } catch (error) {
    throw new OperatorError(`${cannotWrite(dataDir)}: ${messageOf(error)}. ${remedy()}`, { cause: error });
  }
  const { bavail, bsize, blocks } = await statfs(dataDir);
  const freeBytes = bavail * bsize;
  // Some file systems report no size.
  if (blocks > 0 && freeBytes < neededBytes)
    throw new OperatorError(
      `${cannotWrite(dataDir)}: ${inMb(freeBytes)} MB are free on its disk, and ${inMb(neededBytes)} MB are needed. ${remedy()}`,
    );
}

function cannotWrite(dataDir: string): string {
  return `The data folder ${dataDir} (dataDir, SVC_DATA_DIR) cannot be written to`;
}

function remedy(): string {
  const user = process.geteuid === undefined ? "the user of this process" : `user ${process.geteuid()}`;
  return `Name a folder that ${user} may write to and that has room, or give the service a PostgreSQL (DATABASE_URL).`;
}

function inMb(bytes: number): number {
  return Math.floor(bytes / 1024 ** 2);
}

/**
 * Creates a folder and its parents. Does not use `mkdir` with `recursive`: Node 20 loops forever
 * when a folder cannot be created although its parent exists, as in /proc.
 */
async function makeFolder(path: string): Promise<void> {
  if (await isFolder(path)) return;
  const parent = dirname(path);
  if (parent !== path) await makeFolder(parent);
  await mkdir(path).catch(async (error: unknown) => {
    // Another process may have created it meanwhile. A file in its place is a fault.
    if (!(await isFolder(path))) throw error;
  });
}

async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}

async function writeTrialFile(folder: string): Promise<void> {
  const path = join(folder, `trial.${randomBytes(6).toString("hex")}`);
  const file = await open(path, "wx", 0o600);
  try {
    await file.writeFile(randomBytes(trialBytes));
    await file.sync();
  } finally {
    await file.close();
    await rm(path, { force: true });
  }
}
