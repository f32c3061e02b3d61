import type { ClientBase, Pool } from "pg";
import { tablesSchema } from "../db/names.ts";

/** A table, view or foreign table in the schema of the resources. */
export interface LiveRelation {
  readonly name: string;
  /** `table` includes partitioned ones. */
  readonly kind: "table" | "view" | "foreign table";
}

/** A column of a live table. */
export interface LiveColumn {
  readonly table: string;
  readonly name: string;
  /** As a person would write it: `character varying(40)`. */
  readonly type: string;
  /**
   * Name of the type: `varchar`. A list has its items' type, a domain its base type, every enum
   * `enum`.
   */
  readonly baseType: string;
  readonly isList: boolean;
  readonly isNullable: boolean;
  /** Whether it has a default, is an identity, or is generated. */
  readonly isFilled: boolean;
  /** Whether it is the primary key, or unique, by itself. */
  readonly isKey: boolean;
  /** Whether it is the primary key, or one of its columns. */
  readonly isPrimary: boolean;
}

/** The tables, views and enums in the schema of the resources. */
export interface LiveSchema {
  readonly relations: readonly LiveRelation[];
  /** Names of the enum types. */
  readonly enums: readonly string[];
}

const schemaQuery = `
  SELECT relname AS name,
    CASE WHEN relkind IN ('r', 'p') THEN 'table' WHEN relkind = 'f' THEN 'foreign table' ELSE 'view' END AS kind
  FROM pg_class
  WHERE relnamespace = to_regnamespace($1) AND relkind IN ('r', 'p', 'f', 'v', 'm')
  UNION ALL
  SELECT typname, 'enum' FROM pg_type WHERE typnamespace = to_regnamespace($1) AND typtype = 'e'
  ORDER BY name`;

/** Reads the tables, views and enums in the schema of the resources. */
export async function readSchema(client: ClientBase): Promise<LiveSchema> {
  const { rows } = await client.query<{ name: string; kind: LiveRelation["kind"] | "enum" }>(schemaQuery, [
    tablesSchema,
  ]);
  return {
    relations: rows.flatMap(({ name, kind }) => (kind === "enum" ? [] : [{ name, kind }])),
    enums: rows.flatMap(({ name, kind }) => (kind === "enum" ? [name] : [])),
  };
}

const columnsQuery = `
  SELECT cls.relname AS "table", att.attname AS name, format_type(att.atttypid, att.atttypmod) AS type,
    CASE WHEN base.typtype = 'e' THEN 'enum' ELSE base.typname::text END AS "baseType",
    item.oid IS NOT NULL AS "isList", NOT att.attnotnull AS "isNullable",
    att.atthasdef OR att.attidentity <> '' AS "isFilled",
    EXISTS (
      SELECT FROM pg_index
      WHERE indrelid = cls.oid AND indisunique AND indisvalid AND indpred IS NULL AND indnkeyatts = 1 AND indkey[0] = att.attnum
    ) AS "isKey",
    EXISTS (SELECT FROM pg_index WHERE indrelid = cls.oid AND indisprimary AND att.attnum = ANY(indkey)) AS "isPrimary"
  FROM pg_attribute AS att
  JOIN pg_class AS cls ON cls.oid = att.attrelid
  JOIN pg_type AS own ON own.oid = att.atttypid
  LEFT JOIN pg_type AS item ON item.oid = own.typelem AND own.typcategory = 'A'
  JOIN pg_type AS shown ON shown.oid = coalesce(item.oid, own.oid)
  JOIN pg_type AS base ON base.oid = CASE WHEN shown.typtype = 'd' THEN shown.typbasetype ELSE shown.oid END
  WHERE cls.relnamespace = to_regnamespace($1) AND cls.relname = ANY($2) AND att.attnum > 0 AND NOT att.attisdropped
  ORDER BY cls.relname, att.attnum`;

/** Reads the columns of the named tables, table by table, in their order. */
export async function readColumns(
  client: ClientBase | Pool,
  tables: readonly string[],
): Promise<readonly LiveColumn[]> {
  if (tables.length === 0) return [];
  const { rows } = await client.query<LiveColumn>(columnsQuery, [tablesSchema, tables]);
  return rows;
}
