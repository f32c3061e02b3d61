import type { ClientBase } from "pg";
import { quoteName } from "../db/names.ts";
import type { Statement } from "./statements.ts";

const ofCitext = /(?:"[^"]+"| TYPE) CITEXT\b/;

/**
 * Finds columns of the type `citext` to make or change while the schema `public` has no such type.
 * The search path of a migration has no other schema.
 */
export async function findMissingTypes(
  client: ClientBase,
  statements: readonly Statement[],
): Promise<readonly string[]> {
  const tables = statements.flatMap(({ table, sql }) =>
    table !== undefined && ofCitext.test(sql) ? [table] : [],
  );
  if (tables.length === 0) return [];
  const { rows } = await client.query<{ schema: string | null }>(
    `SELECT (SELECT nspname FROM pg_extension JOIN pg_namespace AS nsp ON nsp.oid = extnamespace WHERE extname = 'citext') AS schema
     WHERE to_regtype('citext') IS NULL`,
  );
  return rows.map(({ schema }) => {
    const place = schema === null ? "is not in the database" : `is in the schema ${quoteName(schema)}`;
    const statement =
      schema === null ? "CREATE EXTENSION citext SCHEMA public" : "ALTER EXTENSION citext SET SCHEMA public";
    return `The type citext, which ${[...new Set(tables)].join(", ")} would get, ${place}, and a migration takes types from the schema public only. First run ${statement}.`;
  });
}
