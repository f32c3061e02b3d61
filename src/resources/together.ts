import { quoteTable } from "../db/names.ts";
import type { TextSql } from "../db/text-sql.ts";
import { isUniqueAlone } from "../mapping/keys.ts";
import type { Caller } from "../kit/caller.ts";
import type { Definition, Row } from "../mapping/definition.ts";
import { allOf, isAlways, partsOf, type Condition } from "../querying/condition.ts";
import { parameterOf } from "../querying/values.ts";
import { findTarget, referable, type Referring } from "./lookup.ts";
import type { CompiledRules } from "../validation/validate.ts";

/**
 * Returns whether the bodies of several creates may be checked before the first of them is written.
 * No answer of the database may depend on a record that does not exist yet.
 *
 * The rule `unique` of the resource's own unique field does depend on such records. It is allowed,
 * since the database refuses equal values as well.
 */
export function areCheckedTogether(
  { own, ...referring }: Referring & { readonly own: Definition },
  { fields }: CompiledRules,
  caller: Caller,
): boolean {
  const isApart = (name: string): boolean => {
    const target = findTarget(referring.definitions, name);
    if (target === undefined || target.isView || target.table === own.table) return false;
    const condition = referable(target, referring, caller);
    return condition !== undefined && !leadsTo(condition, own);
  };
  const isOwnUnique = (key: readonly string[], column: string): boolean =>
    own.fields.some(
      (field) =>
        field.name === column && key.length === 1 && key[0] === field.name && isUniqueAlone(field, own),
    );
  return (
    own.fields.every(({ references }) => references === undefined || isApart(references.resource)) &&
    fields.every(({ key, lookups }) =>
      lookups.every(
        ({ name, target, column }) =>
          isApart(target) ||
          (name === "unique" &&
            findTarget(referring.definitions, target)?.name === own.name &&
            isOwnUnique(key, column)),
      ),
    )
  );
}

// Triggers and rules of the table may change the judged data: a balance that must stay above 0, or
// an article that is sold out. The records of a table are also those of its parent.
const effectsText = `
  WITH own AS (SELECT $1::regclass AS id UNION SELECT relid FROM pg_partition_tree($1::regclass))
  SELECT 1 WHERE EXISTS (
    SELECT FROM own JOIN pg_trigger ON tgrelid = id JOIN pg_proc AS fn ON fn.oid = tgfoid
    -- A bit of tgtype: INSERT.
    WHERE NOT tgisinternal AND tgtype & 4 > 0 AND fn.pronamespace IS DISTINCT FROM to_regnamespace('svc')
  ) OR EXISTS (SELECT FROM own JOIN pg_rewrite ON ev_class = id)
  OR ($2::boolean AND EXISTS (SELECT FROM pg_inherits WHERE $1::regclass IN (inhrelid, inhparent)))`;

/**
 * Returns whether the rules of access and of values of new records may be decided for all of them
 * together. No decision may depend on the other records, as it may because of a trigger.
 *
 * @param rules Rules that `areCheckedTogether` allows.
 * @param creatable Condition of each new record.
 */
export async function areJudgedTogether(
  { own, ...referring }: Referring & { readonly own: Definition },
  {
    rules,
    creatable,
    caller,
    sql,
  }: {
    readonly rules: CompiledRules;
    readonly creatable: Condition;
    readonly caller: Caller;
    readonly sql: TextSql;
  },
): Promise<boolean> {
  if (leadsTo(creatable, own)) return false;
  const referred = own.fields.flatMap(({ references }) => {
    const target = references && findTarget(referring.definitions, references.resource);
    return target === undefined ? [] : [referable(target, referring, caller)];
  });
  const judge = allOf([creatable, ...referred]);
  const asksOthers = rules.fields.some(({ lookups }) =>
    lookups.some(({ target }) => findTarget(referring.definitions, target)?.name !== own.name),
  );
  if (isAlways(judge) && !asksOthers) return true;
  return (await sql(effectsText, [quoteTable(own.table), hasLinks(judge)])).length === 0;
}

function hasLinks(condition: Condition): boolean {
  return condition.kind === "related" || partsOf(condition).some(hasLinks);
}

/**
 * Returns whether a condition reads records of the resource's table, or of a view, which may show
 * them.
 */
function leadsTo(condition: Condition, own: Definition): boolean {
  if (condition.kind === "related") {
    const { target } = condition.link;
    if (target.isView || target.table === own.table) return true;
  }
  return partsOf(condition).some((one) => leadsTo(one, own));
}

/**
 * Throws for new records with the same value of a unique field. The database may detect that only
 * at the commit.
 */
export function refuseEqual({ fields }: Definition, many: readonly Row[]): void {
  for (const field of fields.filter(({ isUnique }) => isUnique)) {
    const values = many.map((row) => row[field.name] ?? null).filter((value) => value !== null);
    const texts = values.map((value) => JSON.stringify(parameterOf(field, value)).toLowerCase());
    if (new Set(texts).size < texts.length)
      throw new Error(`Records of the batch have the same ${field.name}`);
  }
}
