import type { TextSql } from "../db/text-sql.ts";
import type { Definition, Definitions, Field, FieldType, Relation, Row } from "../mapping/definition.ts";
import { linkOf } from "../querying/links.ts";
import { needOf } from "../querying/prisma-include.ts";
import { readLinked } from "../querying/read.ts";
import { rowOf, selectionOf } from "../querying/selection.ts";
import { scalarParameter } from "../querying/values.ts";

type Args = Readonly<Record<string, unknown>>;

const textTypes: readonly FieldType[] = ["Date", "Time", "Interval"];

function isText({ type, native }: Field): boolean {
  return native !== undefined || textTypes.includes(type);
}

/**
 * Returns whether an `include` shows a field whose values the Prisma client does not read as they
 * are: a duration not at all, a time without its microseconds.
 */
export function includesTexts(
  { resource }: Pick<Relation, "resource">,
  args: unknown,
  definitions: Definitions,
): boolean {
  const target = definitions.get(resource);
  if (target === undefined) return false;
  const include = (typeof args === "object" && args !== null ? (args as Args)["include"] : {}) as
    | Args
    | undefined;
  return (
    target.fields.some(isText) ||
    target.relations.some((relation) => {
      const inner = include?.[relation.name];
      return inner !== undefined && inner !== false && includesTexts(relation, inner, definitions);
    })
  );
}

/**
 * Reads the record that a relation leads to from each row, in one statement.
 *
 * @param args Of `include`.
 * @returns Undefined for arguments that only Prisma knows, and for a relation to many.
 */
export async function findRelatedTexts(
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
): Promise<readonly (Row | null)[] | undefined> {
  const link = linkOf(definition, relation, definitions);
  const related = needOf(definition, definitions, { [relation.name]: args })?.related.get(relation.name);
  if (related === undefined || link.isMany) return undefined;
  const values = rows.map((row) => {
    const value = scalarParameter(link.from.type, row[relation.localField]);
    return typeof value === "string" || typeof value === "number" ? String(value) : null;
  });
  const statement = selectionOf(link.target, definitions, related.need);
  const { where } = related;
  const reading = { definition, link, statement, ...(where === undefined ? {} : { where }) };
  const found = await readLinked(sql, reading, values);
  return values.map((value) => {
    const [raw] = found.get(value ?? "") ?? [];
    return raw === undefined ? null : rowOf(statement.root, raw);
  });
}
