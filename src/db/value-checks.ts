import type { ClientBase } from "pg";
import type { Step } from "./migrate.ts";
import { fittingName, quoteName, quoteTable, quoteText, tablesSchema } from "./names.ts";

/** A column that may hold nothing but the listed values (null aside). */
export interface ValueCheck {
  readonly table: string;
  readonly column: string;
  readonly isList: boolean;
  readonly values: readonly string[];
}

interface LiveCheck {
  readonly table: string;
  readonly name: string;
  /** The condition that it was made with, null when it is not one of ours. PostgreSQL gives back another wording of it. */
  readonly condition: string | null;
}

const ending = "_svc_values";

const liveQuery = `
  SELECT cls.relname AS "table", con.conname AS name, obj_description(con.oid, 'pg_constraint') AS condition
  FROM pg_constraint AS con
  JOIN pg_class AS cls ON cls.oid = con.conrelid
  WHERE con.contype = 'c' AND cls.relnamespace = to_regnamespace($1) AND cls.relname = ANY($2)
    AND right(con.conname, ${ending.length}) = '${ending}'`;

/**
 * The steps that bring the CHECK constraints of enum columns to the given ones: those to take before the columns change,
 * and those to take after.
 *
 * @param tables Every managed table: a constraint of one of them that is not given any more is dropped.
 */
export async function planValueChecks({
  client,
  tables,
  checks,
}: {
  readonly client: ClientBase;
  readonly tables: readonly string[];
  readonly checks: readonly ValueCheck[];
}): Promise<{ readonly before: readonly Step[]; readonly after: readonly Step[] }> {
  const { rows: live } = await client.query<LiveCheck>(liveQuery, [tablesSchema, tables]);
  const there = new Set(live.map(({ table, name, condition }) => keyOf(table, name, condition)));
  const wanted = checks.map((check) => {
    const name = fittingName(`${check.table}_${check.column}`, ending);
    const condition = conditionOf(check);
    return { ...check, name, condition, key: keyOf(check.table, name, condition) };
  });
  const keys = new Set(wanted.map(({ key }) => key));
  return {
    before: live
      .filter(({ table, name, condition }) => !keys.has(keyOf(table, name, condition)))
      .map(({ table, name }) => ({
        title: `${table}: drop the check ${name}`,
        sql: `ALTER TABLE ${quoteTable(table)} DROP CONSTRAINT ${quoteName(name)}`,
      })),
    after: wanted
      .filter(({ key }) => !there.has(key))
      .map(({ table, column, name, condition }) => ({
        title: `${table}: check the values of ${column}`,
        sql:
          `ALTER TABLE ${quoteTable(table)} ADD CONSTRAINT ${quoteName(name)} CHECK (${condition});\n` +
          `COMMENT ON CONSTRAINT ${quoteName(name)} ON ${quoteTable(table)} IS ${quoteText(condition)}`,
      })),
  };
}

function keyOf(table: string, name: string, condition: string | null): string {
  return JSON.stringify([table, name, condition]);
}

function conditionOf({ column, isList, values }: ValueCheck): string {
  const list = values.map(quoteText).join(", ");
  return isList ? `${quoteName(column)} <@ ARRAY[${list}]::text[]` : `${quoteName(column)} IN (${list})`;
}
