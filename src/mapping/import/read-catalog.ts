import type { ClientBase } from "pg";
import type {
  Catalog,
  CatalogColumn,
  CatalogConstraint,
  CatalogRelation,
  CatalogType,
  UniqueIndex,
} from "./catalog.ts";

const wanted = `
  SELECT cls.oid FROM pg_class AS cls
  WHERE cls.relnamespace = ANY (SELECT oid FROM pg_namespace WHERE nspname = ANY ($1))
    AND cls.relkind IN ('r', 'p', 'v', 'm', 'f')`;

const relationsQuery = `
  SELECT cls.oid::int8 AS oid, nsp.nspname AS schema, cls.relname AS name,
    CASE cls.relkind WHEN 'r' THEN 'table' WHEN 'p' THEN 'partitioned table' WHEN 'v' THEN 'view'
      WHEN 'm' THEN 'materialized view' ELSE 'foreign table' END AS kind,
    cls.relispartition AS "isPartition", cls.relrowsecurity AS "hasRowSecurity",
    obj_description(cls.oid, 'pg_class') AS comment,
    (SELECT ext.extname FROM pg_depend AS dep JOIN pg_extension AS ext ON ext.oid = dep.refobjid
      WHERE dep.classid = 'pg_class'::regclass AND dep.objid = cls.oid AND dep.deptype = 'e'
        AND dep.refclassid = 'pg_extension'::regclass LIMIT 1) AS extension,
    CASE WHEN cls.relkind IN ('v', 'm') THEN pg_get_viewdef(cls.oid, true) END AS definition,
    EXISTS (SELECT FROM pg_rewrite AS rul WHERE rul.ev_class = cls.oid AND rul.ev_type = '1'
      AND rul.ev_action::text LIKE '%:hasTargetSRFs true%') AS "makesRows",
    ARRAY(SELECT child.relname::text FROM pg_inherits AS inh JOIN pg_class AS child ON child.oid = inh.inhrelid
      WHERE inh.inhparent = cls.oid AND NOT child.relispartition ORDER BY 1) AS children,
    ARRAY(SELECT trg.tgname::text FROM pg_trigger AS trg
      WHERE trg.tgrelid = cls.oid AND NOT trg.tgisinternal AND trg.tgfoid <> ALL (ARRAY(
        SELECT oid FROM pg_proc WHERE pronamespace = to_regnamespace('svc')))
      ORDER BY 1) AS triggers,
    ARRAY(SELECT CASE rul.ev_type WHEN '2' THEN 'UPDATE' WHEN '3' THEN 'INSERT' ELSE 'DELETE' END
      FROM pg_rewrite AS rul WHERE rul.ev_class = cls.oid AND rul.is_instead AND rul.ev_type <> '1' ORDER BY 1) AS replaced,
    -- Bits of tgtype: a row, before, INSERT.
    EXISTS (SELECT FROM pg_trigger AS trg
      WHERE trg.tgrelid = cls.oid AND NOT trg.tgisinternal AND trg.tgtype & 7 = 7) AS "fillsRows",
    cls.relispopulated AS "isPopulated",
    has_schema_privilege(nsp.oid, 'USAGE') AS "mayUseSchema",
    has_any_column_privilege(cls.oid, 'SELECT') AS "maySelect",
    has_any_column_privilege(cls.oid, 'INSERT') AS "mayInsert",
    -- Those of identity columns need no privilege, and belong to no default.
    ARRAY(SELECT seq.relname::text FROM pg_attrdef AS def
      JOIN pg_depend AS dep ON dep.classid = 'pg_attrdef'::regclass AND dep.objid = def.oid
        AND dep.refclassid = 'pg_class'::regclass
      JOIN pg_class AS seq ON seq.oid = dep.refobjid
      WHERE def.adrelid = cls.oid
        AND CASE WHEN seq.relkind = 'S' THEN NOT has_sequence_privilege(seq.oid, 'USAGE') END
      ORDER BY 1) AS "deniedSequences",
    has_any_column_privilege(cls.oid, 'UPDATE') AS "mayUpdate",
    has_table_privilege(cls.oid, 'DELETE') AS "mayDelete",
    has_table_privilege(cls.oid, 'TRIGGER') AS "mayAddTriggers"
  FROM pg_class AS cls JOIN pg_namespace AS nsp ON nsp.oid = cls.relnamespace
  WHERE cls.oid IN (${wanted})
  ORDER BY array_position($1, nsp.nspname::text), cls.relname`;

/** Returns SQL for a right on a column. One that the whole table lacks follows the other. */
const mayWrite = (right: string, other: string): string => `
  CASE WHEN has_any_column_privilege(att.attrelid, '${right}') THEN has_column_privilege(att.attrelid, att.attnum, '${right}')
    ELSE has_column_privilege(att.attrelid, att.attnum, '${other}') OR NOT has_any_column_privilege(att.attrelid, '${other}') END`;

const columnsQuery = `
  SELECT att.attrelid::int8 AS relation, att.attnum AS number, att.attname AS name,
    att.atttypid::int8 AS "typeOid", att.atttypmod AS modifier, format_type(att.atttypid, att.atttypmod) AS type,
    att.attnotnull AS "isNotNull", pg_get_expr(def.adbin, def.adrelid) AS expression,
    att.attidentity AS identity, att.attgenerated <> '' AS "isGenerated", att.attgenerated = 'v' AS "isVirtual",
    col_description(att.attrelid, att.attnum) AS comment,
    has_column_privilege(att.attrelid, att.attnum, 'SELECT') AS "maySelect",
    ${mayWrite("INSERT", "UPDATE")} AS "mayInsert", ${mayWrite("UPDATE", "INSERT")} AS "mayUpdate"
  FROM pg_attribute AS att
  LEFT JOIN pg_attrdef AS def ON def.adrelid = att.attrelid AND def.adnum = att.attnum
  WHERE att.attrelid IN (${wanted}) AND att.attnum > 0 AND NOT att.attisdropped
  ORDER BY att.attrelid, att.attnum`;

// A foreign key to a partitioned table has a further constraint for each partition. The foreign key
// is its parent.
const constraintsQuery = `
  SELECT CASE con.contype WHEN 'f' THEN 'foreign' ELSE 'check' END AS kind,
    con.conrelid::int8 AS relation, con.contypid::int8 AS domain,
    coalesce(con.conkey, '{}') AS columns, con.confrelid::int8 AS target,
    (SELECT format('%s.%s', nsp.nspname, cls.relname) FROM pg_class AS cls
      JOIN pg_namespace AS nsp ON nsp.oid = cls.relnamespace WHERE cls.oid = con.confrelid) AS "targetName",
    coalesce(con.confkey, '{}') AS "targetColumns",
    CASE con.confdeltype WHEN 'a' THEN 'noAction' WHEN 'r' THEN 'restrict' WHEN 'c' THEN 'cascade'
      WHEN 'n' THEN 'setNull' WHEN 'd' THEN 'setDefault' END AS "onDelete",
    CASE WHEN con.contype = 'c' THEN pg_get_expr(con.conbin, con.conrelid) END AS condition,
    con.convalidated AS "isValidated"
  FROM pg_constraint AS con
  WHERE con.contype IN ('f', 'c') AND (con.contypid <> 0 OR con.conrelid IN (${wanted}))
    AND (con.contype <> 'f' OR con.conparentid = 0)
  ORDER BY con.conrelid, con.conname`;

const indexesQuery = `
  SELECT idx.indrelid::int8 AS relation, cls.relname AS name, idx.indisprimary AS "isPrimary",
    ARRAY(SELECT part.number FROM unnest(idx.indkey::int2[]) WITH ORDINALITY AS part (number, place)
      WHERE part.place <= idx.indnkeyatts ORDER BY part.place) AS columns
  FROM pg_index AS idx JOIN pg_class AS cls ON cls.oid = idx.indexrelid
  WHERE idx.indrelid IN (${wanted}) AND idx.indisunique AND idx.indisvalid
    AND idx.indpred IS NULL AND idx.indexprs IS NULL
  ORDER BY idx.indrelid, idx.indisprimary DESC, idx.indnkeyatts, cls.relname`;

const typesQuery = `
  WITH RECURSIVE used (oid) AS (
    SELECT att.atttypid FROM pg_attribute AS att
    WHERE att.attrelid IN (${wanted}) AND att.attnum > 0 AND NOT att.attisdropped
    UNION
    SELECT next.oid FROM used JOIN pg_type AS typ ON typ.oid = used.oid
    CROSS JOIN LATERAL (VALUES (typ.typbasetype), (CASE WHEN typ.typcategory = 'A' THEN typ.typelem END)) AS next (oid)
    WHERE next.oid <> 0
  )
  SELECT typ.oid::int8 AS oid, typ.typname AS name,
    CASE typ.typtype WHEN 'b' THEN 'base' WHEN 'c' THEN 'composite' WHEN 'd' THEN 'domain' WHEN 'e' THEN 'enum'
      WHEN 'r' THEN 'range' WHEN 'm' THEN 'multirange' ELSE 'pseudo' END AS kind,
    CASE WHEN typ.typcategory = 'A' AND typ.typtype = 'b' THEN typ.typelem ELSE 0 END::int8 AS item,
    typ.typbasetype::int8 AS "domainBase", typ.typtypmod AS "domainModifier", typ.typnotnull AS "isNotNullDomain",
    CASE WHEN typ.typtype = 'd' THEN typ.typdefault END AS "domainDefault",
    ARRAY(SELECT label.enumlabel::text FROM pg_enum AS label WHERE label.enumtypid = typ.oid ORDER BY label.enumsortorder) AS labels
  FROM pg_type AS typ WHERE typ.oid IN (SELECT oid FROM used)`;

const madeQuery = `
  SELECT CASE WHEN "table" LIKE '%.%' THEN split_part("table", '.', 1) ELSE 'public' END AS schema,
    substr("table", strpos("table", '.') + 1) AS name
  FROM svc.installed_resources WHERE is_managed`;

/**
 * Reads the tables and views of the schemas in six statements, regardless of their number.
 *
 * @param client A connection in a transaction, so that all statements see the same tables.
 */
export async function readCatalog(client: ClientBase, schemas: readonly string[]): Promise<Catalog> {
  const rowsOf = async <T>(query: string, values: readonly unknown[] = [schemas]): Promise<readonly T[]> => {
    const { rows } = await client.query<{ row: T }>(`SELECT to_json(one) AS row FROM (${query}) AS one`, [
      ...values,
    ]);
    return rows.map(({ row }) => row);
  };
  const { rows } = await client.query<{ isThere: boolean }>(
    `SELECT to_regclass('svc.installed_resources') IS NOT NULL
       AND has_table_privilege('svc.installed_resources', 'SELECT') AS "isThere"`,
  );
  return {
    relations: await rowsOf<CatalogRelation>(relationsQuery),
    columns: await rowsOf<CatalogColumn>(columnsQuery),
    constraints: await rowsOf<CatalogConstraint>(constraintsQuery),
    indexes: await rowsOf<UniqueIndex>(indexesQuery),
    types: await rowsOf<CatalogType>(typesQuery),
    made: rows[0]?.isThere === true ? await rowsOf(madeQuery, []) : [],
  };
}

/** Returns the names of the schemas that are neither PostgreSQL's nor svc's. */
export async function readSchemas(client: ClientBase): Promise<readonly string[]> {
  const { rows } = await client.query<{ name: string }>(
    `SELECT nspname AS name FROM pg_namespace
     WHERE nspname !~ '^pg_' AND nspname NOT IN ('information_schema', 'svc') ORDER BY 1`,
  );
  return rows.map(({ name }) => name);
}
