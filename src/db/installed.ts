import type { ClientBase, Pool } from "pg";
import type { AppliedMigrations } from "./migrate.ts";
import { tablesSchema } from "./names.ts";

/** What the last migration wrote down about a resource. */
export interface InstalledResource {
  readonly name: string;
  readonly table: string;
  readonly isManaged: boolean;
  readonly hash: string;
}

/** What a database has had installed. */
export interface Installed {
  readonly migrations: AppliedMigrations;
  readonly resources: readonly InstalledResource[];
  /** The row triggers that fire, by the table that they are on; `name` is the trigger's. */
  readonly triggers: readonly { readonly name: string; readonly table: string }[];
}

export const nothingInstalled: Installed = { migrations: {}, resources: [], triggers: [] };

const installedQuery = `
  SELECT
    (SELECT coalesce(json_object_agg(name, checksum), '{}') FROM svc.migrations) AS migrations,
    (
      SELECT coalesce(json_agg(json_build_object('name', name, 'table', "table", 'isManaged', is_managed, 'hash', hash)), '[]')
      FROM svc.installed_resources
    ) AS resources,
    (
      SELECT coalesce(json_agg(json_build_object('name', trg.tgname, 'table', cls.relname)), '[]')
      FROM pg_trigger AS trg
      JOIN pg_class AS cls ON cls.oid = trg.tgrelid
      JOIN pg_proc AS fn ON fn.oid = trg.tgfoid
      WHERE cls.relnamespace = to_regnamespace($1) AND fn.pronamespace = to_regnamespace('svc') AND trg.tgenabled IN ('O', 'A')
    ) AS triggers`;

/** In one query. Fails with an `undefined_table` or `invalid_schema_name` where the service's tables are not there yet. */
async function readInstalled(client: ClientBase | Pool): Promise<Installed> {
  const { rows } = await client.query<Installed>(installedQuery, [tablesSchema]);
  return rows[0] ?? nothingInstalled;
}

/** What is installed, in one query. */
export async function findInstalled(pool: Pool): Promise<Installed> {
  try {
    return await readInstalled(pool);
  } catch (error) {
    if (unmigratedCodes.includes(codeOf(error))) return nothingInstalled;
    throw error;
  }
}

const unmigratedCodes: readonly unknown[] = ["42P01", "3F000"];

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}

/** The same inside a transaction, which an error would end. */
export async function findInstalledInTransaction(client: ClientBase): Promise<Installed> {
  const { rows } = await client.query<{ isThere: boolean }>(
    `SELECT to_regclass('svc.migrations') IS NOT NULL AS "isThere"`,
  );
  return rows[0]?.isThere === true ? readInstalled(client) : nothingInstalled;
}
