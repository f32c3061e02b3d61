import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { openEmbedded, type EmbeddedDatabase } from "../../src/embedded/embedded.ts";
import { openDatabase } from "../../src/db/client.ts";
import { createLog } from "../../src/telemetry/log.ts";
import { migrateCore } from "./core-database.ts";
import { whenTestsEnd } from "./services.ts";

const run = promisify(execFile);
const log = createLog({ level: "silent" });

/**
 * Variable with a folder from `makeTemplate`, shared by several processes: creating one takes 5 s
 * of CPU.
 */
export const templateVariable = "SVC_TEST_EMBEDDED";

const given = process.env[templateVariable];
let template = given === undefined ? undefined : Promise.resolve(given);

/**
 * Fills a data dir with an embedded database by a copy, which takes a tenth of the time of a new
 * one.
 *
 * @param isMigrated Whether it has the service's empty tables, which take 2 s of CPU. Default: an
 *   empty database.
 */
export async function fillDataDir(
  dataDir: string,
  { isMigrated = false }: { readonly isMigrated?: boolean } = {},
): Promise<void> {
  template ??= makeOwnTemplate();
  await copyDatabase(isMigrated ? migratedOf(await template) : await template, dataDir);
}

/** Opens an empty database in this process. */
export async function openNewEmbedded(dataDir: string): Promise<EmbeddedDatabase> {
  await fillDataDir(dataDir);
  return openEmbedded({ dataDir, log });
}

async function makeOwnTemplate(): Promise<string> {
  const folder = await makeTemplate();
  whenTestsEnd(() => rm(folder, { recursive: true }));
  return folder;
}

/** Creates the folder that `fillDataDir` copies. The caller removes it. */
export async function makeTemplate(parent = tmpdir()): Promise<string> {
  const folder = await mkdtemp(join(parent, "svc-embedded-"));
  await (await openEmbedded({ dataDir: folder, log })).close();
  const migrated = migratedOf(folder);
  await copyDatabase(folder, migrated);
  const embedded = await openEmbedded({ dataDir: migrated, log });
  const database = await openDatabase({ url: embedded.url, poolSize: 1, isEmbedded: true });
  await migrateCore(database.pool);
  await database.close();
  await embedded.close();
  return folder;
}

function migratedOf(folder: string): string {
  return join(folder, "migrated");
}

async function copyDatabase(from: string, to: string): Promise<void> {
  await mkdir(to, { recursive: true });
  // The folder has a thousand files, for which `cp` of node:fs takes seven times the CPU.
  await run("cp", ["-R", join(from, "postgres"), join(to, "postgres")]);
}
