import { randomBytes } from "node:crypto";
import { Client } from "pg";
import { postgresUrl, whenTestsEnd } from "./services.ts";

export interface TestDatabase {
  readonly url: string;
  /** Ends every connection to it and removes it. */
  drop(): Promise<void>;
}

/** Databases not dropped yet, by name. */
const open = new Map<string, TestDatabase>();

/**
 * Makes a database with a random name.
 *
 * @param template Database to copy, which must have no connection; default: an empty one.
 */
export async function createTestDatabase({
  template,
}: { readonly template?: string } = {}): Promise<TestDatabase> {
  const server = await postgresUrl();
  const name = `svc_test_${randomBytes(6).toString("hex")}`;
  await execute(server, `CREATE DATABASE ${name}${template === undefined ? "" : ` TEMPLATE "${template}"`}`);
  const url = new URL(server);
  url.pathname = `/${name}`;
  const database = {
    url: url.href,
    async drop() {
      if (!open.delete(name)) return;
      await execute(server, `DROP DATABASE ${name} WITH (FORCE)`);
    },
  };
  open.set(name, database);
  return database;
}

/** Has new sessions read and write values as no default of PostgreSQL does. */
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
  ];
  for (const setting of settings) await execute(url, `ALTER DATABASE ${name} SET ${setting}`);
}

// What tests left behind on a server that outlives them.
whenTestsEnd(async () => {
  for (const database of open.values()) await database.drop();
});

async function execute(url: string, sql: string): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}
