import { randomBytes } from "node:crypto";
import { Client } from "pg";
import { postgresUrl, whenTestsEnd } from "./services.ts";

export interface TestDatabase {
  readonly url: string;
  /** Ends every connection to the database and removes it. */
  drop(): Promise<void>;
}

/** Databases that are not dropped yet, by name. */
const open = new Map<string, TestDatabase>();

/**
 * Creates a database with a random name.
 *
 * @param template Database to copy, which must have no connection; default: an empty one.
 */
export async function createTestDatabase({
  template,
}: { readonly template?: string } = {}): Promise<TestDatabase> {
  const server = await postgresUrl();
  const name = `svc_test_${randomBytes(6).toString("hex")}`;
  const copied = template === undefined ? "" : ` TEMPLATE "${template}"`;
  await execute(server, (version) => `CREATE DATABASE ${name}${copied}${version < 15 ? "" : strategy}`);
  const url = new URL(server);
  url.pathname = `/${name}`;
  const database = {
    url: url.href,
    async drop() {
      if (!open.delete(name)) return;
      await execute(server, () => `DROP DATABASE ${name} WITH (FORCE)`);
    },
  };
  open.set(name, database);
  return database;
}

/** Changes the settings for the form of values to unusual ones, for new sessions. */
export async function changeValueSettings(url: string): Promise<void> {
  const name = new URL(url).pathname.slice(1);
  const settings = [
    "timezone = 'Asia/Kolkata'",
    "datestyle = 'German'",
    "intervalstyle = 'sql_standard'",
    "bytea_output = 'escape'",
    "extra_float_digits = 0",
    "standard_conforming_strings = off",
    "quote_all_identifiers = on",
    "default_transaction_isolation = serializable",
    "array_nulls = off",
    "session_replication_role = replica",
  ];
  for (const setting of settings) await execute(url, () => `ALTER DATABASE ${name} SET ${setting}`);
}

// Removes databases that tests left on a server that outlives them.
whenTestsEnd(async () => {
  for (const database of open.values()) await database.drop();
});

/**
 * By default, PostgreSQL would copy each block through its buffers, which takes five times the CPU.
 * Version 14 has no choice.
 */
const strategy = " STRATEGY file_copy";

/** @param sqlFor Returns the SQL for the major version of the server. */
async function execute(url: string, sqlFor: (version: number) => string): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<{ server_version_num: string }>("SHOW server_version_num");
    await client.query(sqlFor(Math.floor(Number(rows[0]?.server_version_num) / 10_000)));
  } finally {
    await client.end();
  }
}
