import type { TextSql } from "../db/text-sql.ts";
import type { Definition, Definitions, Relation, Row } from "../mapping/definition.ts";
import { linkOf } from "../querying/links.ts";
import { needOf } from "../querying/prisma-include.ts";
import { readLinkedTo } from "../querying/read.ts";
import { rowOf, selectionOf, type Raw } from "../querying/selection.ts";
import { scalarParameter } from "../querying/values.ts";

/**
 * Returns for each row the related records that `include` would give, read by one statement. The
 * rows themselves may have been deleted.
 *
 * @param args The relation's part of `include`: true, or Prisma's arguments.
 * @returns The related records; undefined for arguments that only Prisma supports.
 */
export async function findRelatedRecords(
  sql: TextSql,
  {
    definition,
    definitions,
    relation,
    args,
    rows,
  }: {
    readonly definition: Definition;
    readonly definitions: Definitions;
    readonly relation: Relation;
    readonly args: unknown;
    readonly rows: readonly Row[];
  },
): Promise<readonly unknown[] | undefined> {
  const link = linkOf(definition, relation, definitions);
  const related = needOf(definition, definitions, { [relation.name]: args })?.related.get(relation.name);
  if (related === undefined) return undefined;
  const { need, ...rest } = related;
  const statement = selectionOf(link.target, definitions, need);
  const values = rows.map((row) => {
    const value = scalarParameter(link.from.type, row[relation.localField]);
    if (Buffer.isBuffer(value)) return `\\x${value.toString("hex")}`;
    return typeof value === "object" || value === undefined ? null : String(value);
  });
  const lists = await readLinkedTo(sql, { definition, link, statement, ...rest }, values);
  return lists.map((list) => {
    const records = list.map((raw: Raw) => rowOf(statement.root, raw));
    return link.isMany ? records : (records[0] ?? null);
  });
}
