import type { ClientBase } from "pg";
import { partsOfTable, quoteTable, tableSql } from "../db/names.ts";

/** Kinds of objects that the service makes, and `other` for the rest. */
export type ObjectKind = "column" | "index" | "constraint" | "other";

/** A part of a table, or an object that depends on it. */
export interface LiveObject {
  readonly table: string;
  /** `index` includes primary keys and unique constraints, which have one. */
  readonly kind: ObjectKind;
  readonly name: string;
  /**
   * Kind in messages: `unique index`. Includes "invalid" and "deferrable", which `definition`
   * lacks.
   */
  readonly what: string;
  /** PostgreSQL's own text of the object. */
  readonly definition: string;
  /** Columns of the same table that the object uses; it is dropped with them. */
  readonly columns: readonly string[];
  readonly comment: string | null;
  /** Whether the object is a column that must have a value and has no default. */
  readonly isNeeded: boolean;
  /**
   * Whether the schema engine sees the whole object. The engine ignores the predicate, collation
   * and nulls of an index, and whether PostgreSQL could finish it. It ignores that a foreign key is
   * deferrable or not validated.
   */
  readonly isPlain: boolean;
}

/** Returns the key of an object in maps and sets. A database has each kind, table and name once. */
export function keyOf(kind: ObjectKind | "table", table: string, name: string): string {
  return JSON.stringify([kind, table, name]);
}

/** Returns the key of an object, either live or on record. */
export function keyOfObject({
  kind,
  table,
  name,
}: Pick<LiveObject, "table" | "name"> & { readonly kind: ObjectKind | "table" }): string {
  return keyOf(kind, table, name);
}

// A foreign key to a partitioned table has a child constraint for each partition, with itself as
// the parent.
const liveQuery = `
  WITH tables AS (
    SELECT cls.oid, ${tableSql} AS name FROM pg_class AS cls
    WHERE relkind IN ('r', 'p') AND cls.oid = ANY(SELECT to_regclass(given) FROM unnest($1::text[]) AS given)
  )
  SELECT tables.name AS "table", 'column' AS kind, att.attname AS name, 'column' AS what,
    concat_ws(' ', format_type(att.atttypid, att.atttypmod), CASE WHEN att.attnotnull THEN 'NOT NULL' END,
      'DEFAULT ' || pg_get_expr(def.adbin, def.adrelid)) AS definition,
    ARRAY[att.attname::text] AS columns, NULL AS comment,
    att.attnotnull AND def.oid IS NULL AND att.attidentity = '' AS "isNeeded", true AS "isPlain"
  FROM tables JOIN pg_attribute AS att ON att.attrelid = tables.oid AND att.attnum > 0 AND NOT att.attisdropped
  LEFT JOIN pg_attrdef AS def ON def.adrelid = att.attrelid AND def.adnum = att.attnum
  UNION ALL
  SELECT tables.name, CASE WHEN con.contype = 'x' THEN 'other' ELSE 'index' END, cls.relname,
    CASE con.contype WHEN 'p' THEN 'primary key' WHEN 'x' THEN 'exclusion constraint'
      WHEN 'u' THEN CASE WHEN ind.indimmediate THEN 'unique constraint' ELSE 'deferrable unique constraint' END
      ELSE concat(CASE WHEN NOT ind.indisvalid THEN 'invalid ' END, CASE WHEN ind.indisunique THEN 'unique ' END, 'index') END,
    CASE WHEN con.contype = 'x' THEN pg_get_constraintdef(con.oid) ELSE pg_get_indexdef(ind.indexrelid) END,
    ARRAY(
      SELECT attname::text FROM pg_attribute WHERE attrelid = tables.oid AND (attnum = ANY(ind.indkey) OR attnum IN (
        SELECT refobjsubid FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = ind.indexrelid AND refobjid = tables.oid AND refobjsubid > 0
      )) AND attnum > 0
    ), obj_description(ind.indexrelid, 'pg_class'), false,
    ind.indpred IS NULL AND ind.indexprs IS NULL AND ind.indisvalid AND ind.indimmediate AND ind.indnatts = ind.indnkeyatts
      AND pg_get_indexdef(ind.indexrelid) !~ ' NULLS NOT DISTINCT' AND NOT EXISTS (
        SELECT FROM unnest(ind.indkey::int2[], ind.indcollation::oid[]) AS part (num, coll)
        JOIN pg_attribute AS att ON att.attrelid = tables.oid AND att.attnum = part.num AND att.attcollation <> part.coll
      )
  FROM tables JOIN pg_index AS ind ON ind.indrelid = tables.oid JOIN pg_class AS cls ON cls.oid = ind.indexrelid
  LEFT JOIN pg_constraint AS con ON con.conindid = ind.indexrelid AND con.conrelid = tables.oid AND con.contype IN ('p', 'u', 'x')
  UNION ALL
  SELECT tables.name, 'constraint', con.conname, CASE con.contype WHEN 'f' THEN 'foreign key' ELSE 'check' END,
    pg_get_constraintdef(con.oid),
    ARRAY(SELECT attname::text FROM pg_attribute WHERE attrelid = tables.oid AND attnum = ANY(con.conkey)),
    obj_description(con.oid, 'pg_constraint'), false,
    con.contype = 'c' OR (con.convalidated AND NOT con.condeferrable AND con.confmatchtype = 's')
  FROM tables JOIN pg_constraint AS con ON con.conrelid = tables.oid AND (con.contype = 'c' OR con.contype = 'f' AND con.conparentid = 0)
  UNION ALL
  SELECT tables.name, 'other', trg.tgname, 'trigger', pg_get_triggerdef(trg.oid), '{}', NULL, false, true
  FROM tables JOIN pg_trigger AS trg ON trg.tgrelid = tables.oid AND NOT trg.tgisinternal
  JOIN pg_proc AS fn ON fn.oid = trg.tgfoid AND fn.pronamespace IS DISTINCT FROM to_regnamespace('svc')
  UNION ALL
  SELECT tables.name, 'other', pol.polname, 'policy', '', '{}', NULL, false, true
  FROM tables JOIN pg_policy AS pol ON pol.polrelid = tables.oid
  UNION ALL
  SELECT tables.name, 'other', rul.rulename, 'rule', pg_get_ruledef(rul.oid), '{}', NULL, false, true
  FROM tables JOIN pg_rewrite AS rul ON rul.ev_class = tables.oid
  UNION ALL
  SELECT tables.name, 'other', ext.stxname, 'statistics object', pg_get_statisticsobjdef(ext.oid),
    ARRAY(SELECT attname::text FROM pg_attribute WHERE attrelid = tables.oid AND attnum = ANY(ext.stxkeys)), NULL, false, true
  FROM tables JOIN pg_statistic_ext AS ext ON ext.stxrelid = tables.oid
  UNION ALL
  SELECT DISTINCT tables.name, 'other', cls.relname, CASE cls.relkind WHEN 'm' THEN 'materialized view' ELSE 'view' END, '', '{}'::text[], NULL, false, true
  FROM tables JOIN pg_depend AS dep ON dep.refclassid = 'pg_class'::regclass AND dep.refobjid = tables.oid AND dep.classid = 'pg_rewrite'::regclass
  JOIN pg_rewrite AS rul ON rul.oid = dep.objid JOIN pg_class AS cls ON cls.oid = rul.ev_class AND cls.relkind IN ('v', 'm')
  ORDER BY 1, 2, 3`;

/** Reads all objects of the named tables, without the service's own triggers. */
export async function readObjects(
  client: ClientBase,
  tables: readonly string[],
): Promise<readonly LiveObject[]> {
  if (tables.length === 0) return [];
  return (await client.query<LiveObject>(liveQuery, [tables.map(quoteTable)])).rows;
}

/**
 * Reads the relations with the given names. Tables, indexes, sequences and views of a schema share
 * one namespace.
 *
 * @param names Names, each with its schema unless that is `public`, as for tables.
 */
export async function readRelations(
  client: ClientBase,
  names: readonly string[],
): Promise<readonly { readonly name: string; readonly what: string }[]> {
  if (names.length === 0) return [];
  const { rows } = await client.query<{ name: string; what: string }>(
    `SELECT ${tableSql} AS name, concat(CASE cls.relkind WHEN 'i' THEN 'index' WHEN 'I' THEN 'index' WHEN 'S' THEN 'sequence'
       WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' ELSE 'table' END, ' on the table ' || own.relname) AS what
     FROM pg_class AS cls LEFT JOIN pg_index AS ind ON ind.indexrelid = cls.oid LEFT JOIN pg_class AS own ON own.oid = ind.indrelid
     WHERE cls.oid = ANY(SELECT to_regclass(given) FROM unnest($1::text[]) AS given)`,
    [names.map(quoteTable)],
  );
  return rows;
}

/** A sequence and the column that owns it, such as a serial column. */
export interface OwnedSequence {
  readonly name: string;
  readonly table: string;
  readonly column: string;
}

/** Returns a sequence or an index for SQL. It is in the schema of its table. */
export function placeOf({ table, name }: Pick<OwnedSequence, "table" | "name">): string {
  return quoteTable(`${partsOfTable(table).schema}.${name}`);
}

export async function readSequences(
  client: ClientBase,
  tables: readonly string[],
): Promise<readonly OwnedSequence[]> {
  const { rows } = await client.query<OwnedSequence>(
    `SELECT seq.relname AS name, ${tableSql} AS "table", att.attname AS column
     FROM pg_class AS seq
     JOIN pg_depend AS dep ON dep.classid = 'pg_class'::regclass AND dep.objid = seq.oid AND dep.deptype = 'a'
     JOIN pg_class AS cls ON cls.oid = dep.refobjid
     JOIN pg_attribute AS att ON att.attrelid = cls.oid AND att.attnum = dep.refobjsubid
     WHERE seq.relkind = 'S' AND cls.oid = ANY(SELECT to_regclass(given) FROM unnest($1::text[]) AS given)`,
    [tables.map(quoteTable)],
  );
  return rows;
}
