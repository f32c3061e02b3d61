import type { ClientBase, Pool } from "pg";
import type { AppliedMigrations } from "./core-migrations.ts";
import { hasTable } from "./live-tables.ts";
import { withMissingRight } from "../db/missing-right.ts";
import { tableSql } from "../db/names.ts";

/** The record of the last migration about a resource. */
export interface InstalledResource {
  readonly name: string;
  readonly table: string;
  readonly isManaged: boolean;
  readonly hash: string;
}

/** Migrations, resources and triggers that are installed in a database. */
export interface Installed {
  readonly migrations: AppliedMigrations;
  readonly resources: readonly InstalledResource[];
  /** The enabled triggers of the service on the tables of those resources. */
  readonly triggers: readonly InstalledTrigger[];
}

/** An enabled trigger on a resource's table. */
interface InstalledTrigger {
  readonly name: string;
  readonly table: string;
  /**
   * Partitions and children of the table, at any depth, on which the trigger of this name does not
   * fire.
   */
  readonly missing: readonly {
    readonly table: string;
    /**
     * Whether this is a partition that lacks the trigger, because PostgreSQL adds no TRUNCATE
     * trigger to a new partition.
     */
    readonly isNew: boolean;
  }[];
}

const nothingInstalled: Installed = { migrations: {}, resources: [], triggers: [] };

const installedQuery = `
  WITH RECURSIVE own AS (
    SELECT trg.tgname, trg.tgtype, cls.oid AS relid, ${tableSql} AS name
    FROM pg_trigger AS trg
    JOIN pg_class AS cls ON cls.oid = trg.tgrelid
    JOIN pg_proc AS fn ON fn.oid = trg.tgfoid
    WHERE fn.pronamespace = to_regnamespace('svc') AND trg.tgenabled IN ('O', 'A')
      AND ${tableSql} IN (SELECT "table" FROM svc.installed_resources)
  ), below (root, relid) AS (
    SELECT inhparent, inhrelid FROM pg_inherits WHERE inhparent IN (SELECT relid FROM own)
    UNION SELECT root, inhrelid FROM pg_inherits JOIN below ON inhparent = below.relid
  ), missing AS (
    SELECT own.relid, own.tgname, part.oid::regclass::text AS "table", part.relispartition AND there.oid IS NULL AS is_new
    FROM own
    JOIN below ON below.root = own.relid
    -- PostgreSQL 15 has no triggers of TRUNCATE (32) on foreign tables.
    JOIN pg_class AS part ON part.oid = below.relid AND NOT (part.relkind = 'f' AND own.tgtype & 32 > 0)
    LEFT JOIN pg_trigger AS there ON there.tgrelid = part.oid AND there.tgname = own.tgname
    WHERE there.tgenabled IS NULL OR there.tgenabled NOT IN ('O', 'A')
  )
  SELECT
    (SELECT coalesce(json_object_agg(name, checksum), '{}') FROM svc.migrations) AS migrations,
    (
      SELECT coalesce(json_agg(json_build_object('name', name, 'table', "table", 'isManaged', is_managed, 'hash', hash)), '[]')
      FROM svc.installed_resources
    ) AS resources,
    (
      SELECT coalesce(json_agg(json_build_object('name', tgname, 'table', own.name, 'missing', (
        SELECT coalesce(json_agg(json_build_object('table', "table", 'isNew', is_new) ORDER BY "table"), '[]')
        FROM missing WHERE missing.relid = own.relid AND missing.tgname = own.tgname
      ))), '[]')
      FROM own
    ) AS triggers`;

/** Reads the installed parts; nothing when the service's tables do not exist. */
export async function findInstalled(client: ClientBase | Pool): Promise<Installed> {
  try {
    // Queried first: within a transaction, the error of a missing table would abort it.
    if (!(await hasTable(client, "svc.migrations"))) return nothingInstalled;
    const { rows } = await client.query<Installed>(installedQuery);
    return rows[0] ?? nothingInstalled;
  } catch (error) {
    throw withMissingRight(error);
  }
}

/**
 * Finds the tables whose captures are `ENABLE ALWAYS` while the trigger that fills the outbox is
 * not. Their events of a session with `session_replication_role = replica` are not delivered.
 */
export async function findUndelivered(client: ClientBase): Promise<readonly string[]> {
  const { rows } = await client.query<{ table: string }>(`
    SELECT DISTINCT ${tableSql} AS "table" FROM pg_trigger AS trg
    JOIN pg_class AS cls ON cls.oid = trg.tgrelid
    JOIN pg_proc AS fn ON fn.oid = trg.tgfoid AND fn.pronamespace = to_regnamespace('svc') AND cls.relnamespace <> fn.pronamespace
    WHERE trg.tgenabled = 'A' AND NOT EXISTS (
      SELECT FROM pg_trigger WHERE tgrelid = to_regclass('svc.events') AND tgname = 'enqueue_event' AND tgenabled = 'A'
    ) ORDER BY 1`);
  return rows.map(({ table }) => table);
}
