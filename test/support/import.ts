import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { runAdmin } from "../../src/cli/program.ts";
import { createMemoryTerminal } from "./memory-terminal.ts";

/** Output of a run of `svc-admin`. */
export interface AdminRun {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Runs `svc-admin` on a database and a configuration folder. Without a URL, uses the embedded
 * database in the folder.
 */
export async function admin(
  { url, configDir }: { readonly url?: string; readonly configDir: string },
  ...args: readonly string[]
): Promise<AdminRun> {
  const terminal = createMemoryTerminal();
  const env = {
    SVC_CONFIG_DIR: configDir,
    SVC_DATA_DIR: join(configDir, "data"),
    ...(url !== undefined && { DATABASE_URL: url }),
  };
  const status = await runAdmin({ args, env, cwd: configDir, terminal });
  return { status, ...terminal.read() };
}

/** Returns the mapping files of a configuration folder by name. */
export async function mappingFiles(configDir: string): Promise<Readonly<Record<string, string>>> {
  const folder = join(configDir, "resources");
  const names = (await readdir(folder)).filter((name) => name.endsWith(".yaml")).toSorted();
  const files = names.map(async (name) => [name, await readFile(join(folder, name), "utf8")] as const);
  return Object.fromEntries(await Promise.all(files));
}
