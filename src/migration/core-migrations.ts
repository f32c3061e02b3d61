import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { Client, type ClientBase } from "pg";
import { codeOf, OperatorError } from "../kit/errors.ts";

/** One SQL statement, or several, and what it is there for. */
export interface Step {
  /** For messages: `orders: capture trigger`. */
  readonly title: string;
  readonly sql: string;
}

/** One folder of prisma/migrations. */
export interface CoreMigration {
  readonly name: string;
  readonly sql: string;
  readonly checksum: string;
}

/** Name to checksum of the core migrations that a database has. */
export type AppliedMigrations = Readonly<Record<string, string>>;

/** The same from src/migration and from dist/migration. */
const coreFolder = new URL("../../prisma/migrations/", import.meta.url);

/** Shared by all processes that migrate; no meaning but that nobody else uses it. */
const lockKey = 7_382_914_405;

/** Changing a table waits for the transactions that use it, and everybody else waits behind the change. */
const lockTimeoutMs = 30_000;

const lockNotAvailable = "55P03";

/** Every core migration that this version knows, in the order in which they are applied. */
export async function loadCoreMigrations(): Promise<readonly CoreMigration[]> {
  const entries = await readdir(coreFolder, { withFileTypes: true });
  const names = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
  return Promise.all(
    names.toSorted().map(async (name) => {
      const sql = await readFile(new URL(`${name}/migration.sql`, coreFolder), "utf8");
      // A checkout with other line ends is the same migration.
      const checksum = createHash("sha256").update(sql.replaceAll("\r\n", "\n")).digest("hex");
      return { name, sql, checksum };
    }),
  );
}

/**
 * The migrations that a database lacks.
 * Throws OperatorError when it has one that this version does not know, or another text under a name that it knows.
 */
export function pendingMigrations(
  known: readonly CoreMigration[],
  applied: AppliedMigrations,
): readonly CoreMigration[] {
  const names = new Set(known.map(({ name }) => name));
  const unknown = Object.keys(applied).filter((name) => !names.has(name));
  if (unknown.length > 0) {
    throw new OperatorError(
      `The database is newer than this version of svc: it has the migration ${unknown.join(", ")}. Start the version that made it, or a later one.`,
    );
  }
  const changed = known.filter(({ name, checksum }) => (applied[name] ?? checksum) !== checksum);
  if (changed.length > 0) {
    throw new OperatorError(
      `The migration ${changed.map(({ name }) => name).join(", ")} was changed after it was applied to this database. Restore its text and put the change into a new migration.`,
    );
  }
  return known.filter(({ name }) => applied[name] === undefined);
}

/** The steps that apply core migrations and note them down. */
export function coreSteps(pending: readonly CoreMigration[]): readonly Step[] {
  // Not by the Prisma engine's applyMigrations: that keeps its book in a table `_prisma_migrations` of the schema `public`, where an
  // application that uses Prisma itself has its own.
  return pending.map(({ name, sql, checksum }) => ({
    title: `core migration ${name}`,
    sql: `${sql.trim()}\nINSERT INTO svc.migrations (name, checksum) VALUES ('${name}', '${checksum}')`,
  }));
}

/**
 * Runs `work` in one transaction on a connection of its own, and commits it unless it throws.
 *
 * Only one such transaction runs at a time: on PostgreSQL by an advisory lock that ends with it (a session's lock would be lost
 * behind a pooler such as PgBouncer); on the embedded database, where all sockets are one session and an advisory lock
 * excludes nobody, since that runs one transaction after another.
 *
 * @param isReadOnly For a plan: neither waits for others nor can change anything.
 */
export async function inMigrationTransaction<T>({
  url,
  isReadOnly,
  work,
}: {
  readonly url: string;
  readonly isReadOnly: boolean;
  readonly work: (client: Client) => Promise<T>;
}): Promise<T> {
  const client = new Client({ connectionString: url, application_name: "svc migrate", keepAlive: true });
  // A connection that is lost fails the query at work; without a listener it would end the process too.
  client.on("error", () => undefined);
  await client.connect();
  try {
    await client.query(isReadOnly ? "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY" : "BEGIN");
    // A role or database may carry limits meant for requests, and a search path that leads elsewhere.
    await client.query(`
      SET LOCAL statement_timeout = 0;
      SET LOCAL idle_in_transaction_session_timeout = 0;
      SET LOCAL lock_timeout = 0;
      SET LOCAL search_path = public`);
    if (!isReadOnly) {
      await client.query("SELECT pg_advisory_xact_lock($1)", [lockKey]);
      await client.query(`SET LOCAL lock_timeout = ${lockTimeoutMs}`);
    }
    const result = await work(client);
    await client.query("COMMIT");
    return result;
  } finally {
    // Rolls back what was not committed. That the connection was lost is known by then.
    await client.end().catch(() => undefined);
  }
}

/** Runs the steps in order. Throws OperatorError naming the one that failed; the caller's transaction is then lost. */
export async function runSteps(client: ClientBase, steps: readonly Step[]): Promise<void> {
  for (const { title, sql } of steps) {
    try {
      await client.query(sql);
    } catch (error) {
      throw new OperatorError(
        `The migration failed and changed nothing. Step: ${title}. ${reasonOf(error)}`,
        {
          cause: error,
        },
      );
    }
  }
}

function reasonOf(error: unknown): string {
  if (codeOf(error) === lockNotAvailable)
    return `Another transaction kept a table busy for ${lockTimeoutMs / 1000} s. Try again when it is done.`;
  const detail =
    error instanceof Error && "detail" in error && typeof error.detail === "string"
      ? ` (${error.detail})`
      : "";
  // In full: whoever changes tables has to find the row that stands in the way.
  const message = error instanceof Error ? error.message : String(error);
  return `PostgreSQL says: ${message}${detail}`;
}
