import type { ClientBase } from "pg";
import { quoteTable } from "../db/names.ts";
import { arraysOf } from "../db/sql.ts";
import type { Clause, Statement } from "./statements.ts";

/** A drop or change of type that PostgreSQL refuses while other objects depend on it. */
interface Change {
  readonly kind: "column" | "constraint" | "index";
  /** Name for `to_regclass`: of the index, or of the table of the column or constraint. */
  readonly place: string;
  readonly name: string;
  readonly isDrop: boolean;
  /**
   * Name of the new type for `to_regtype`. Null for a drop, and for a name that is no type, such as
   * `BIGSERIAL`.
   */
  readonly type: string | null;
  /** Completes "depends on". */
  readonly shown: string;
  readonly sql: string;
}

// Tables that inherit from a changed one change with it. Dependencies that end with the change are
// left out: of a check on its columns, or of a column's default on its sequence.
const blockingQuery = `
  WITH RECURSIVE changes AS (
    SELECT at, kind, to_regclass(place)::oid AS relid, name, is_drop, to_regtype(type)::oid AS type, true AS is_named
    FROM unnest($1::text[], $2::text[], $3::text[], $4::bool[], $5::text[]) WITH ORDINALITY AS given (kind, place, name, is_drop, type, at)
    UNION
    SELECT at, kind, inhrelid, name, is_drop, type, false FROM changes JOIN pg_inherits ON inhparent = relid WHERE kind = 'column'
  ), parts AS (
    SELECT at, is_drop, type, 'pg_class'::regclass AS class, relid AS id, attnum::int AS sub
    FROM changes JOIN pg_attribute ON attrelid = relid AND attname = name
    WHERE kind = 'column' AND NOT attisdropped AND (is_named OR NOT is_drop OR (NOT attislocal AND attinhcount = 1))
    UNION ALL
    SELECT at, true, NULL, 'pg_constraint'::regclass, oid, 0
    FROM changes JOIN pg_constraint ON conrelid = relid AND conname = name WHERE kind = 'constraint'
    UNION ALL
    SELECT at, true, NULL, 'pg_class'::regclass, conindid, 0
    FROM changes JOIN pg_constraint ON conrelid = relid AND conname = name AND contype <> 'f' AND conindid <> 0 WHERE kind = 'constraint'
    UNION ALL
    SELECT at, true, NULL, 'pg_class'::regclass, relid, 0 FROM changes WHERE kind = 'index'
  ), owned AS (
    SELECT at, is_drop, type, class, id, sub FROM parts
    UNION ALL
    SELECT at, true, NULL, 'pg_class'::regclass, seq.oid, 0
    FROM parts JOIN pg_depend AS dep ON dep.refclassid = class AND dep.refobjid = id AND dep.refobjsubid = sub AND dep.classid = 'pg_class'::regclass
    JOIN pg_class AS seq ON seq.oid = dep.objid AND seq.relkind = 'S'
    WHERE is_drop AND sub > 0
  ), found AS (
    SELECT at, dep.classid AS class, dep.objid AS id, dep.objsubid AS sub
    FROM owned JOIN pg_depend AS dep ON dep.refclassid = class AND dep.refobjid = id AND dep.refobjsubid = owned.sub
    WHERE CASE WHEN is_drop THEN
      (dep.deptype = 'n' AND NOT EXISTS (
        SELECT FROM pg_depend AS other JOIN owned AS gone ON gone.is_drop AND other.refclassid = gone.class AND other.refobjid = gone.id AND other.refobjsubid = gone.sub
        WHERE other.classid = dep.classid AND other.objid = dep.objid AND other.objsubid = dep.objsubid AND other.deptype IN ('a', 'i')
      ) AND NOT EXISTS (SELECT FROM parts AS gone WHERE gone.class = dep.classid AND gone.id = dep.objid AND gone.sub = dep.objsubid))
      -- Before version 15, a generated column went with what it is made of.
      OR (dep.classid = 'pg_class'::regclass AND dep.objsubid > 0)
    ELSE dep.classid = ANY(ARRAY['pg_rewrite', 'pg_trigger', 'pg_policy', 'pg_proc', 'pg_publication_rel']::regclass[])
      OR (dep.classid = 'pg_class'::regclass AND dep.objsubid > 0)
      OR EXISTS (SELECT FROM pg_attrdef AS def WHERE dep.classid = 'pg_attrdef'::regclass AND def.oid = dep.objid AND (adrelid, adnum) <> (owned.id, owned.sub))
    END
    UNION
    -- Foreign keys are made again, and both sides must still compare.
    SELECT at, 'pg_constraint'::regclass, con.oid, 0
    FROM parts JOIN pg_constraint AS con ON contype = 'f' AND parts.id IN (conrelid, confrelid)
    CROSS JOIN unnest(conkey, confkey) AS pair (num, ref)
    JOIN pg_attribute AS one ON (one.attrelid, one.attnum) = (conrelid, pair.num)
    JOIN pg_attribute AS two ON (two.attrelid, two.attnum) = (confrelid, pair.ref)
    JOIN pg_type AS old ON old.oid = CASE WHEN (conrelid, pair.num) = (parts.id, parts.sub) THEN two.atttypid ELSE one.atttypid END
    JOIN pg_type AS new ON new.oid = parts.type
    WHERE NOT is_drop AND ((conrelid, pair.num) = (parts.id, parts.sub) OR (confrelid, pair.ref) = (parts.id, parts.sub))
      AND (old.typcategory <> new.typcategory OR (old.typcategory = 'U' AND old.oid <> new.oid))
      AND NOT EXISTS (SELECT FROM parts AS gone WHERE gone.class = 'pg_constraint'::regclass AND gone.id = con.oid)
    UNION
    SELECT at, 'pg_class'::regclass, att.attrelid, att.attnum
    FROM parts JOIN pg_class AS cls ON cls.oid = parts.id JOIN pg_type AS row ON row.oid = cls.reltype
    JOIN pg_attribute AS att ON att.atttypid IN (row.oid, row.typarray) AND NOT att.attisdropped
    JOIN pg_class AS own ON own.oid = att.attrelid AND own.relkind IN ('r', 'p', 'm')
    WHERE NOT is_drop
    UNION
    SELECT at, 'pg_partitioned_table'::regclass, partrelid, 0
    FROM parts JOIN pg_partitioned_table ON partrelid = parts.id AND parts.sub = ANY(partattrs::int2[]) WHERE parts.sub > 0
  )
  SELECT DISTINCT found.at::int AS at, CASE
    WHEN class = 'pg_partitioned_table'::regclass THEN concat('partition key of the table ', named.identity)
    WHEN rul.rulename = '_RETURN' THEN concat(CASE cls.relkind WHEN 'm' THEN 'materialized view ' ELSE 'view ' END, named.identity)
    WHEN class = 'pg_constraint'::regclass THEN concat(CASE con.contype WHEN 'f' THEN 'foreign key ' ELSE 'constraint ' END, named.identity)
    WHEN class = 'pg_publication_rel'::regclass THEN concat('publication ', quote_ident(pub.pubname))
    WHEN class IN ('pg_attrdef'::regclass, 'pg_class'::regclass) AND att.attname IS NOT NULL
      THEN concat(CASE WHEN att.attgenerated <> '' THEN 'generated ' END, 'column ', named.identity)
    ELSE concat_ws(' ', named.type, named.identity) END AS object
  FROM found
  LEFT JOIN pg_rewrite AS rul ON class = 'pg_rewrite'::regclass AND rul.oid = id
  LEFT JOIN pg_class AS cls ON cls.oid = rul.ev_class
  LEFT JOIN pg_constraint AS con ON class = 'pg_constraint'::regclass AND con.oid = id
  LEFT JOIN pg_publication_rel AS rel ON class = 'pg_publication_rel'::regclass AND rel.oid = id
  LEFT JOIN pg_publication AS pub ON pub.oid = rel.prpubid
  LEFT JOIN pg_attrdef AS def ON class = 'pg_attrdef'::regclass AND def.oid = id
  LEFT JOIN pg_attribute AS att ON (att.attrelid, att.attnum) = (coalesce(def.adrelid, id), coalesce(def.adnum, sub)) AND class IN ('pg_attrdef'::regclass, 'pg_class'::regclass) AND att.attnum > 0
  CROSS JOIN LATERAL pg_identify_object(
    CASE WHEN rul.rulename = '_RETURN' OR att.attnum IS NOT NULL OR class = 'pg_partitioned_table'::regclass THEN 'pg_class'::regclass ELSE class END,
    CASE WHEN rul.rulename = '_RETURN' THEN rul.ev_class WHEN att.attnum IS NOT NULL THEN att.attrelid ELSE id END,
    CASE WHEN att.attnum IS NOT NULL THEN att.attnum ELSE 0 END
  ) AS named
  -- Those of partitions follow the one of their table.
  WHERE con.conparentid IS NULL OR con.conparentid = 0
  ORDER BY 1, 2`;

/**
 * Finds the objects that depend on a column to drop or retype, or on an index or key to drop.
 * PostgreSQL would refuse the change in the middle of the migration, without advice.
 *
 * @returns A sentence for each object, with its dependency and the way to remove it.
 */
export async function findBlocking(
  client: ClientBase,
  statements: readonly Statement[],
): Promise<readonly string[]> {
  const changes = statements.flatMap((statement) =>
    statement.clauses.flatMap((clause) => changeOf(statement, clause) ?? []),
  );
  if (changes.length === 0) return [];
  const { rows } = await client.query<{ at: number; object: string }>(
    blockingQuery,
    arraysOf(changes, "kind", "place", "name", "isDrop", "type"),
  );
  // Only one sentence for a foreign key, which depends on a column and on its index.
  const byObject = new Map(rows.toReversed().map(({ at, object }) => [object, changes[at - 1]]));
  return [...byObject]
    .toReversed()
    .flatMap(([object, change]) => (change === undefined ? [] : [sentenceOf(object, change)]));
}

function changeOf(statement: Statement, { action, kind, type, name, sql }: Clause): Change | undefined {
  const { table, schema, head } = statement;
  const given = { name, isDrop: action === "drop", type: null, sql: head + sql };
  if (kind === "column" && table !== undefined && (action === "drop" || type !== undefined)) {
    const shown = `the column ${name} of the table ${table}`;
    return { ...given, kind, place: quoteTable(table), type: type ?? null, shown };
  }
  if (sql.startsWith("DROP CONSTRAINT ") && table !== undefined)
    return { ...given, kind: "constraint", place: quoteTable(table), shown: `${name} of the table ${table}` };
  if (sql.startsWith("DROP INDEX "))
    return { ...given, kind: "index", place: quoteTable(`${schema}.${name}`), shown: `the index ${name}` };
  return undefined;
}

function sentenceOf(object: string, { isDrop, shown, sql }: Change): string {
  const change = isDrop ? "which would be dropped" : "whose type would change";
  return (
    `The ${object} depends on ${shown}, ${change}: PostgreSQL refuses that, and svc does not touch what it did not make. ` +
    `Drop it or change it first. Or do it all in a migration by hand: drop it, ${sql}, and make it again.`
  );
}
