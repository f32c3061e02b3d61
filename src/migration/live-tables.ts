import type { ClientBase, Pool } from "pg";
import { quoteTable, tableSql, tablesSchema } from "../db/names.ts";

/** A table, view or foreign table in a schema of the resources. */
export interface LiveRelation {
  /** Name as in mapping files: with its schema unless that is `public`. */
  readonly name: string;
  /** Kind; `table` includes partitioned tables. */
  readonly kind: "table" | "view" | "foreign table";
  /** Its owner, and the role of this session, when the role may not read it. Otherwise null. */
  readonly closed: { readonly owner: string; readonly role: string } | null;
}

export interface LiveColumn {
  readonly table: string;
  readonly name: string;
  /** Type as in SQL: `character varying(40)`. */
  readonly type: string;
  /**
   * Name of the type: `varchar`. For a list, the type of its items; for a domain, its base type;
   * for every enum, `enum`.
   */
  readonly baseType: string;
  readonly isList: boolean;
  readonly isNullable: boolean;
  /** Whether the column has a default, is an identity, or is generated. */
  readonly isFilled: boolean;
  /** Whether PostgreSQL refuses values for the column: it is generated, or an identity `ALWAYS`. */
  readonly isGenerated: boolean;
  /** Whether it is generated at each read, and not stored (PostgreSQL 18). */
  readonly isVirtual: boolean;
  /** Name of the type itself, such as a domain or an enum. For a plain list, that of its items. */
  readonly ownType: string;
  /** Values of an enum; null for every other type. */
  readonly labels: readonly string[] | null;
  /** Whether the column is the primary key, or a part of it. */
  readonly isPrimary: boolean;
}

/** Returns whether the database has a table of the service, which is written with its schema. */
export async function hasTable(client: ClientBase | Pool, table: string): Promise<boolean> {
  const { rows } = await client.query<{ isThere: boolean }>(
    `SELECT to_regclass('${table}') IS NOT NULL AS "isThere"`,
  );
  return rows[0]?.isThere === true;
}

/** The tables, views and enums in the schemas of the resources. */
export interface LiveSchema {
  readonly relations: readonly LiveRelation[];
  /** Tables with a dot in their names, which no mapping file can name, with their schemas. */
  readonly dotted: readonly string[];
  /** Names of the enum types, with their schemas. */
  readonly enums: readonly string[];
  /** The requested schemas that exist. */
  readonly schemas: readonly string[];
}

// The name of a table in `public` may contain a dot. Mapping files read it as the end of a schema's
// name.
const schemaQuery = `
  SELECT ${tableSql} AS name, nsp.nspname AS schema,
    CASE WHEN relkind IN ('r', 'p') THEN 'table' WHEN relkind = 'f' THEN 'foreign table' ELSE 'view' END AS kind, strpos(relname, '.') > 0 AS "hasDot",
    CASE WHEN NOT has_table_privilege(cls.oid, 'SELECT') THEN json_build_object('owner', pg_get_userbyid(relowner), 'role', current_user) END AS closed
  FROM pg_class AS cls JOIN pg_namespace AS nsp ON nsp.oid = cls.relnamespace
  WHERE nsp.nspname = ANY($1) AND relkind IN ('r', 'p', 'f', 'v', 'm')
  UNION ALL
  SELECT typname, nsp.nspname, 'enum', false, NULL FROM pg_type JOIN pg_namespace AS nsp ON nsp.oid = typnamespace
  WHERE nsp.nspname = ANY($1) AND typtype = 'e'
  UNION ALL
  SELECT nspname, nspname, 'schema', false, NULL FROM pg_namespace WHERE nspname = ANY($1)
  ORDER BY name`;

/** Reads the tables, views and enums in the schemas of the resources. */
export async function readSchema(client: ClientBase, schemas: readonly string[]): Promise<LiveSchema> {
  const { rows } = await client.query<{
    name: string;
    schema: string;
    kind: LiveRelation["kind"] | "enum" | "schema";
    hasDot: boolean;
    closed: LiveRelation["closed"];
  }>(schemaQuery, [schemas]);
  return {
    relations: rows.flatMap(({ name, kind, hasDot, closed }) =>
      kind === "enum" || kind === "schema" || hasDot ? [] : [{ name, kind, closed }],
    ),
    dotted: rows.flatMap(({ name, schema, hasDot }) =>
      hasDot ? [schema === tablesSchema ? `${schema}.${name}` : name] : [],
    ),
    enums: rows.flatMap(({ name, schema, kind }) => (kind === "enum" ? [`${schema}.${name}`] : [])),
    schemas: rows.flatMap(({ name, kind }) => (kind === "schema" ? [name] : [])),
  };
}

/** Returns SQL for an aggregate over a type and the types beneath it, where it is a domain. */
const beneath = (type: string, aggregate: string): string => `(
    WITH RECURSIVE under AS (
      SELECT oid, typtype, typbasetype, typnotnull FROM pg_type WHERE oid = ${type}
      UNION ALL SELECT typ.oid, typ.typtype, typ.typbasetype, typ.typnotnull
      FROM under JOIN pg_type AS typ ON typ.oid = under.typbasetype WHERE under.typtype = 'd'
    ) SELECT ${aggregate} FROM under
  )`;

/** Returns SQL for the base type of a domain, through any number of nested domains. */
export const plainTypeOf = (type: string): string => beneath(type, "max(oid) FILTER (WHERE typtype <> 'd')");

const columnsQuery = `
  SELECT ${tableSql} AS "table", att.attname AS name, format_type(att.atttypid, att.atttypmod) AS type,
    CASE WHEN base.typtype = 'e' THEN 'enum' ELSE base.typname::text END AS "baseType",
    CASE WHEN own.typtype = 'd' THEN own.typname ELSE coalesce(item.typname, own.typname) END::text AS "ownType",
    CASE WHEN base.typtype = 'e' THEN ARRAY(SELECT enumlabel::text FROM pg_enum WHERE enumtypid = base.oid) END AS labels,
    item.oid IS NOT NULL AS "isList", NOT (att.attnotnull OR ${beneath("own.oid", "bool_or(typnotnull)")}) AS "isNullable",
    att.atthasdef OR att.attidentity <> '' OR own.typdefault IS NOT NULL AS "isFilled",
    att.attgenerated <> '' OR att.attidentity = 'a' AS "isGenerated", att.attgenerated = 'v' AS "isVirtual",
    EXISTS (SELECT FROM pg_index WHERE indrelid = cls.oid AND indisprimary AND att.attnum = ANY(indkey)) AS "isPrimary"
  FROM pg_attribute AS att
  JOIN pg_class AS cls ON cls.oid = att.attrelid
  JOIN pg_type AS own ON own.oid = att.atttypid
  JOIN pg_type AS plain ON plain.oid = ${plainTypeOf("own.oid")}
  LEFT JOIN pg_type AS item ON item.oid = plain.typelem AND plain.typcategory = 'A'
  JOIN pg_type AS base ON base.oid = ${plainTypeOf("coalesce(item.oid, plain.oid)")}
  WHERE cls.oid = ANY(SELECT to_regclass(given) FROM unnest($1::text[]) AS given) AND att.attnum > 0 AND NOT att.attisdropped
  ORDER BY "table", att.attnum`;

/** Reads the columns of the named tables, table by table, in their order. */
export async function readColumns(
  client: ClientBase | Pool,
  tables: readonly string[],
): Promise<readonly LiveColumn[]> {
  if (tables.length === 0) return [];
  const { rows } = await client.query<LiveColumn>(columnsQuery, [tables.map(quoteTable)]);
  return rows;
}

/** The columns of a unique index without a condition, in their order. */
export interface LiveUnique {
  readonly table: string;
  readonly columns: readonly string[];
}

const uniquesQuery = `
  SELECT ${tableSql} AS "table",
    ARRAY(SELECT attname::text FROM unnest(ind.indkey::int2[]) WITH ORDINALITY AS part (num, place)
      JOIN pg_attribute ON attrelid = cls.oid AND attnum = part.num WHERE part.place <= ind.indnkeyatts ORDER BY place) AS columns
  FROM pg_index AS ind JOIN pg_class AS cls ON cls.oid = ind.indrelid
  WHERE cls.oid = ANY(SELECT to_regclass(given) FROM unnest($1::text[]) AS given)
    AND ind.indisunique AND ind.indisvalid AND ind.indpred IS NULL AND ind.indexprs IS NULL`;

/** Reads the unique indexes of the named tables. */
export async function readUniques(
  client: ClientBase,
  tables: readonly string[],
): Promise<readonly LiveUnique[]> {
  if (tables.length === 0) return [];
  return (await client.query<LiveUnique>(uniquesQuery, [tables.map(quoteTable)])).rows;
}
