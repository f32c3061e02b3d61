import { createHash } from "node:crypto";
import { join } from "node:path";
import type { ClientBase, Pool } from "pg";
import { quoteText } from "../db/names.ts";
import { OperatorError } from "../kit/errors.ts";
import { namesIn, readText } from "../kit/read-files.ts";
import type { AppliedMigrations, Step } from "./core-migrations.ts";
import { hasTable } from "./live-tables.ts";

/** One file of `migrations` in the configuration folder. */
export interface HandMigration {
  /** Name of the file without `.sql`: `0001_backfill`. */
  readonly name: string;
  readonly sql: string;
  readonly checksum: string;
  /**
   * Whether the file runs in a transaction. Otherwise it is one statement that cannot, such as
   * CREATE INDEX CONCURRENTLY.
   */
  readonly isInTransaction: boolean;
}

const folder = "migrations";
const fileName = /^(\d{1,9})_[A-Za-z0-9_-]{1,100}\.sql$/;
const directive = /^-- svc: *(.*?) *$/;

/**
 * Reads the migrations by hand, in the order of their numbers. Returns none without the folder.
 *
 * @param configDir Absolute path of the configuration folder.
 * @throws OperatorError that lists every fault of the files.
 */
export async function loadHandMigrations(configDir: string): Promise<readonly HandMigration[]> {
  const path = join(configDir, folder);
  const names = (await namesIn(path)).filter((name) => !name.startsWith("."));
  const faults: string[] = [];
  const known = new Map<number, string>();
  const migrations: HandMigration[] = [];
  for (const name of names.toSorted((a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10))) {
    const [, digits] = fileName.exec(name) ?? [];
    const number = Number(digits);
    const other = known.get(number);
    if (digits === undefined)
      faults.push(`${join(path, name)}: expected a name such as 0001_backfill.sql: a number, _ and a name`);
    else if (other !== undefined)
      faults.push(`${join(path, name)}: expected a number of its own; ${other} has the same`);
    else {
      known.set(number, name);
      const read = migrationOf(name, await readText(join(path, name)));
      if (typeof read === "string") faults.push(`${join(path, name)}: ${read}`);
      else migrations.push(read);
    }
  }
  if (faults.length > 0) throw new OperatorError(faults.join("\n"), { faults });
  return migrations;
}

/** Parses a file. Returns a fault as text when the file has one. */
function migrationOf(file: string, given: string): HandMigration | string {
  // Normalises line ends, because a checkout with other line ends has the same migration.
  const text = given.replaceAll("\r\n", "\n");
  // Removes the byte order mark that some editors write. It stays in the checksum.
  const sql = text.replace(/^\uFEFF/, "");
  const [first = ""] = sql.split("\n", 1);
  const [, word] = directive.exec(first) ?? [];
  if (word !== undefined && word !== "no transaction")
    return `expected "-- svc: no transaction" in the first line, or none that begins with "-- svc:"`;
  if (sql.replaceAll(/--.*$/gm, "").trim() === "") return "expected SQL in the file";
  const checksum = createHash("sha256").update(text).digest("hex");
  return { name: file.replace(/\.sql$/, ""), sql, checksum, isInTransaction: word === undefined };
}

/** Returns none in a database of a version without migrations by hand. */
async function appliedByHand(client: ClientBase | Pool): Promise<AppliedMigrations> {
  if (!(await hasTable(client, "svc.hand_migrations"))) return {};
  const { rows } = await client.query<{ name: string; checksum: string }>(
    "SELECT name, checksum FROM svc.hand_migrations",
  );
  return Object.fromEntries(rows.map(({ name, checksum }) => [name, checksum]));
}

/**
 * Finds the migrations that a database lacks. Queries it only when there are files. An applied
 * migration without a file is no fault: it may be newer than these files, or every database may
 * have its work by now.
 *
 * @throws OperatorError when a file was changed after it was applied, or comes before an applied
 *   one.
 */
export async function findPendingByHand(
  client: ClientBase | Pool,
  known: readonly HandMigration[],
): Promise<readonly HandMigration[]> {
  const applied: AppliedMigrations = known.length === 0 ? {} : await appliedByHand(client);
  const changed = known.filter(({ name, checksum }) => (applied[name] ?? checksum) !== checksum);
  const pending = known.filter(({ name }) => applied[name] === undefined);
  const last = known.findLast(({ name }) => applied[name] !== undefined);
  const late = pending.filter((one) => last !== undefined && known.indexOf(one) < known.indexOf(last));
  const faults = [
    ...changed.map(
      ({ name }) =>
        `The migration by hand ${name} was changed after it was applied to this database. Restore its text and put the change into a new migration.`,
    ),
    ...late.map(
      ({ name }) =>
        `The migration by hand ${name} comes before ${last?.name}, which was applied already. Give it a higher number.`,
    ),
  ];
  if (faults.length > 0) throw new OperatorError(faults.join("\n"), { faults });
  return pending;
}

/** Returns the title of the migration in plans, reports and the audit trail. */
export function titleOf({ name }: HandMigration): string {
  return `migration by hand ${name}`;
}

export function handSteps(migration: HandMigration): { readonly work: Step; readonly record: Step } {
  const { name, sql, checksum } = migration;
  const title = titleOf(migration);
  return {
    work: { title, sql: sql.trim().replace(/;$/, "") },
    record: {
      title: `${title}: record it`,
      sql: `INSERT INTO svc.hand_migrations (name, checksum) VALUES (${quoteText(name)}, ${quoteText(checksum)})`,
    },
  };
}
