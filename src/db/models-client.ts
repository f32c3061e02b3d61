import { execFile } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { mkdir, readdir, rename, rm, stat, symlink, utimes, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import path from "node:path";
import { promisify } from "node:util";
import type { SqlDriverAdapterFactory } from "@prisma/client/runtime/client";
import type { Pool } from "pg";
import { messageOf, OperatorError } from "../errors.ts";
import type { Log } from "../log.ts";
import type { Tracing } from "../tracing.ts";
import { createAdapter } from "./adapter.ts";

type Args = Readonly<Record<string, unknown>>;
type PlainRecord = Readonly<Record<string, unknown>>;

/**
 * What the models client does for one model. Arguments and answers are Prisma's, untyped because the models come from YAML; its values
 * (`Decimal`, `DbNull`, `JsonNull`) are those of `@prisma/client/runtime/client`. A plain null in a Json field is JSON's null, not NULL.
 */
export interface Delegate {
  findMany(args?: Args): Promise<PlainRecord[]>;
  /** Null when nothing matches. */
  findFirst(args?: Args): Promise<PlainRecord | null>;
  count(args?: Args): Promise<number>;
  create(args: Args): Promise<PlainRecord>;
  /** Rejects with P2025 when nothing matches, see `databaseFaultOf`. */
  update(args: Args): Promise<PlainRecord>;
  delete(args: Args): Promise<PlainRecord>;
}

export interface ModelsClient {
  /** The delegate of a model by its name in the schema; throws for an unknown one. */
  delegate(model: string): Delegate;
  /** Leaves the pool open: it is not this client's. */
  close(): Promise<void>;
}

/** What the generated module exports, as far as it is used. */
interface GeneratedModule {
  readonly PrismaClient: new (options: { readonly adapter: SqlDriverAdapterFactory }) => GeneratedClient;
}

type GeneratedClient = Readonly<Record<string, Delegate | undefined>> & { $disconnect(): Promise<void> };

const keptFolders = 5;
/** A run of `prisma generate` that was killed leaves its folder; after an hour nobody is at work in it. */
const abandonedAfterMs = 3_600_000;
const generateTimeoutMs = 120_000;

const require = createRequire(import.meta.url);
const run = promisify(execFile);

/**
 * Opens the client of the tables that the mapping files describe, generated now unless an earlier start did.
 * Throws OperatorError with Prisma's own message when the schema is refused.
 *
 * @param schemaText See `prismaSchemaOf`.
 * @param tracing Writes tell it to the database, for the capture (see `withTraceparent`).
 */
export async function openModelsClient({
  schemaText,
  dataDir,
  pool,
  isEmbedded,
  tracing,
  log,
}: {
  readonly schemaText: string;
  readonly dataDir: string;
  readonly pool: Pool;
  readonly isEmbedded: boolean;
  readonly tracing?: Tracing;
  readonly log: Log;
}): Promise<ModelsClient> {
  const folder = await ensureGenerated({ schemaText, root: path.join(dataDir, "generated"), log });
  const { PrismaClient } = require(path.join(folder, "client")) as GeneratedModule;
  const client = new PrismaClient({ adapter: createAdapter({ pool, isEmbedded, tracing }) });
  return {
    delegate(model) {
      const delegate = client[model.charAt(0).toLowerCase() + model.slice(1)];
      if (delegate === undefined) throw new Error(`The models client has no model ${model}`);
      return delegate;
    },
    close: () => client.$disconnect(),
  };
}

/** The folder of the generated client. Only a complete one ever has the final name, so two starts at once are safe. */
async function ensureGenerated({
  schemaText,
  root,
  log,
}: {
  readonly schemaText: string;
  readonly root: string;
  readonly log: Log;
}): Promise<string> {
  const { version } = require("prisma/package.json") as { readonly version: string };
  const hash = createHash("sha256")
    // The folder holds a link to the packages, so it is of no use to an installation elsewhere.
    .update([version, prismaPackages(), schemaText].join("\0"))
    .digest("hex")
    .slice(0, 16);
  const folder = path.join(path.resolve(root), hash);
  if (await isThere(folder)) {
    // The newest are kept, and newest means used last.
    const now = new Date();
    await utimes(folder, now, now).catch(() => undefined);
    return folder;
  }
  const startedAt = performance.now();
  const draft = `${folder}.${process.pid}.${randomBytes(4).toString("hex")}.tmp`;
  try {
    await generateInto(draft, schemaText);
    await rename(draft, folder).catch(async (error: unknown) => {
      // Another process was first, with the same content.
      if (!(await isThere(folder))) throw error;
    });
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
  log.info({ hash, durationMs: Math.round(performance.now() - startedAt) }, "generated the models client");
  await removeOld(path.dirname(folder), hash).catch((error: unknown) =>
    log.warn({ reason: messageOf(error) }, "old generated clients were not removed"),
  );
  return folder;
}

async function generateInto(draft: string, schemaText: string): Promise<void> {
  const schema = path.join(draft, "schema.prisma");
  await mkdir(path.join(draft, "node_modules"), { recursive: true });
  await writeFile(schema, schemaText);
  // The generator, and then its output, look for packages from their own folder upwards, and the data dir may be anywhere.
  // Being links, both clients load the same files: one class for each error and value, whichever client made it. The generator
  // wants `prisma` beside them, or takes, in a data dir below an installation, that one's and refuses ours.
  const prisma = path.dirname(require.resolve("prisma/package.json"));
  await symlink(prismaPackages(), path.join(draft, "node_modules/@prisma"), "dir");
  await symlink(prisma, path.join(draft, "node_modules/prisma"), "dir");
  const cli = path.join(prisma, "build/index.js");
  try {
    await run(process.execPath, [cli, "generate", "--schema", schema, "--no-hints"], {
      cwd: draft,
      timeout: generateTimeoutMs,
      env: {
        // Any executable will do: with one named, Prisma downloads none, and generating runs none.
        PRISMA_SCHEMA_ENGINE_BINARY: process.execPath,
        PRISMA_HIDE_UPDATE_MESSAGE: "1",
        CHECKPOINT_DISABLE: "1",
        NO_COLOR: "1",
      },
    });
  } catch (error) {
    throw new OperatorError(`The models cannot be generated from the mapping files:\n${outputOf(error)}`, {
      cause: error,
    });
  }
}

/** The folder of every installed `@prisma/...` package. */
function prismaPackages(): string {
  return path.resolve(require.resolve("@prisma/client/package.json"), "../..");
}

/** What a failed command wrote, else why it failed. */
function outputOf(error: unknown): string {
  const { stdout, stderr } = error as { readonly stdout?: string; readonly stderr?: string };
  return (
    [stderr, stdout].find((text) => text !== undefined && text.trim() !== "")?.trim() ?? messageOf(error)
  );
}

/** Removes all but the clients used last; the one in use stays, whatever the clocks say. */
async function removeOld(root: string, inUse: string): Promise<void> {
  const entries = await Promise.all(
    (await readdir(root)).map(async (name) => {
      const folder = path.join(root, name);
      return { name, folder, usedAtMs: (await stat(folder)).mtimeMs };
    }),
  );
  const abandoned = entries.filter(
    ({ name, usedAtMs }) => name.endsWith(".tmp") && usedAtMs < Date.now() - abandonedAfterMs,
  );
  const old = entries
    .filter(({ name }) => !name.endsWith(".tmp") && name !== inUse)
    .toSorted((one, other) => other.usedAtMs - one.usedAtMs)
    .slice(keptFolders - 1);
  for (const { folder } of [...abandoned, ...old]) await rm(folder, { recursive: true, force: true });
}

async function isThere(folder: string): Promise<boolean> {
  return stat(folder).then(
    () => true,
    () => false,
  );
}
