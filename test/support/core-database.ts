import type { Pool } from "pg";
import { openDatabase, type Database } from "../../src/db/client.ts";
import type { PrismaClient } from "./generated/client.ts";
import { coreSteps, loadCoreMigrations, runSteps } from "../../src/migration/core-migrations.ts";
import { createSql, createTransact, type Sql, type Transact } from "../../src/db/sql.ts";
import { createCoreClient } from "./core-client.ts";
import { createTestDatabase, type TestDatabase } from "./database.ts";
import { ofSuite } from "./of-suite.ts";

export interface CoreDatabase {
  readonly url: string;
  readonly database: Database;
  readonly sql: Sql;
  readonly transact: Transact;
  readonly prisma: PrismaClient;
  close(): Promise<void>;
}

/** Titles of the first steps of a migration of an empty database. */
export const coreTitles = (await loadCoreMigrations()).map(({ name }) => `core migration ${name}`);

let template: Promise<string> | undefined;

/** Returns a copy of a database with the service's empty tables. The original is created once. */
export async function createCoreDatabase(): Promise<TestDatabase> {
  template ??= makeTemplate();
  return createTestDatabase({ template: await template });
}

/** Returns such a copy, with a pool and a client. */
export async function openCoreDatabase(): Promise<CoreDatabase> {
  const created = await createCoreDatabase();
  const database = await openDatabase({ url: created.url, poolSize: 4, isEmbedded: false });
  return {
    url: created.url,
    database,
    sql: createSql({ pool: database.pool, isEmbedded: false }),
    transact: createTransact(database.pool),
    prisma: createCoreClient(database.pool),
    async close() {
      await database.close();
      await created.drop();
    },
  };
}

/** Opens such a copy before the tests of a suite, and closes it after them. */
export function coreOfSuite(): CoreDatabase {
  return ofSuite(openCoreDatabase, (core) => core.close());
}

/** Returns the name of the template. It is dropped with the others at the end. */
async function makeTemplate(): Promise<string> {
  const { url } = await createTestDatabase();
  const database = await openDatabase({ url, poolSize: 1, isEmbedded: false });
  await migrateCore(database.pool);
  await database.close();
  return new URL(url).pathname.slice(1);
}

/** Creates the service's tables in an empty database. */
export async function migrateCore(pool: Pool): Promise<void> {
  const client = await pool.connect();
  try {
    await runSteps(client, coreSteps(await loadCoreMigrations()));
  } finally {
    client.release();
  }
}
