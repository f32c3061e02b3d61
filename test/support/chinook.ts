import { readFile } from "node:fs/promises";
import { psql } from "./psql.ts";

/**
 * Creates the tables of a music shop that existed before the service. `TEST_CHINOOK_SQL` names a
 * file with all of the data.
 */
export async function loadChinook(url: string): Promise<void> {
  await psql(url, { file: process.env["TEST_CHINOOK_SQL"] ?? "test/fixtures/chinook-excerpt.sql" });
  // Times without a zone must be equal for every time zone of the database's owners.
  const database = await psql(url, { sql: "SELECT quote_ident(current_database())" });
  await psql(url, { sql: `ALTER DATABASE ${database} SET timezone = 'America/New_York'` });
}

/** Returns the named mapping files of test/fixtures/chinook, in the form for `startService`. */
export async function loadMappings(...names: readonly string[]): Promise<Readonly<Record<string, string>>> {
  const files = names.map(async (name) => {
    const file = `${name}.yaml`;
    return [file, await readFile(`test/fixtures/chinook/${file}`, "utf8")] as const;
  });
  return Object.fromEntries(await Promise.all(files));
}

// Gives the same facts about `public` as `pg_dump --schema-only`, whose version would have to be
// the server's.
const structure = `
  SELECT 'column', to_jsonb(col)::text FROM information_schema.columns AS col WHERE table_schema = 'public'
  UNION ALL
  SELECT 'relation', concat_ws(' ', relname, relkind, relowner::regrole, relacl, reloptions, relrowsecurity, relreplident)
  FROM pg_class WHERE relnamespace = 'public'::regnamespace
  UNION ALL
  SELECT 'constraint', concat_ws(' ', conrelid::regclass, conname, pg_get_constraintdef(oid))
  FROM pg_constraint WHERE connamespace = 'public'::regnamespace
  UNION ALL
  SELECT 'index', indexdef FROM pg_indexes WHERE schemaname = 'public'
  UNION ALL
  SELECT 'sequence', seq::text FROM pg_sequences AS seq WHERE schemaname = 'public'
  UNION ALL
  SELECT 'type', typname FROM pg_type WHERE typnamespace = 'public'::regnamespace
  UNION ALL
  SELECT 'function', proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace
  UNION ALL
  SELECT 'schema', concat_ws(' ', nspname, nspowner::regrole, nspacl) FROM pg_namespace WHERE nspname = 'public'
  ORDER BY 1, 2`;

/** Returns the schema of the tables without triggers, one object per line. */
export async function structureOf(url: string): Promise<readonly string[]> {
  return (await psql(url, { sql: structure })).split("\n");
}

/** Returns every trigger on a table that is not the service's own, as `<table> <trigger>`. */
export async function triggersOf(url: string): Promise<readonly string[]> {
  const sql = `SELECT tgrelid::regclass || ' ' || tgname FROM pg_trigger WHERE NOT tgisinternal AND tgrelid::regclass::text NOT LIKE 'svc.%' ORDER BY 1`;
  const found = await psql(url, { sql });
  return found === "" ? [] : found.split("\n");
}
