import type { Caller } from "../kit/caller.ts";
import { validationError } from "../kit/errors.ts";
import type { Definition, Definitions } from "../mapping/definition.ts";
import type { TextSql } from "../db/text-sql.ts";
import { linkOf, type Link } from "../querying/links.ts";
import { orderOf } from "../querying/prisma-include.ts";
import { conditionOf } from "../querying/prisma-where.ts";
import { readLinkedJson, readLinkedTo } from "../querying/read.ts";
import { allOf } from "../querying/condition.ts";
import type { AccessConditions } from "./access.ts";
import { baseQueryOf } from "./query.ts";
import { createViews, type Views } from "./record-view.ts";

/** Limit of the related records that `include` shows of one record (docs/lists.md). */
const mostRelated = 100;

/** Reads one relation that a request includes. */
export interface RelatedList {
  readonly name: string;
  readonly link: Link;
  /**
   * Reads the related records that the caller may see, as JSON.
   *
   * @param values Values of the near field of the link, as texts.
   */
  read(sql: TextSql, values: readonly (string | null)[]): Promise<readonly string[]>;
}

/**
 * Creates the readers of the relations that requests may include. The transform of each relation's
 * own resource shows its records.
 */
export function createRelatedLists(
  definition: Definition,
  definitions: Definitions,
  access: AccessConditions,
): (name: string, caller: Caller) => RelatedList {
  const known = new Map<string, { readonly link: Link; readonly views: Views }>();
  for (const name of definition.includes) {
    const relation = definition.relations.find((candidate) => candidate.name === name);
    if (relation === undefined) throw new Error(`${definition.name} has no relation ${name}`);
    const link = linkOf(definition, relation, definitions);
    known.set(name, { link, views: createViews(link.target, definitions) });
  }

  return (name, caller) => {
    const found = known.get(name);
    if (found === undefined) throw new Error(`${definition.name} includes no ${name}`);
    const { link, views } = found;
    return {
      name,
      link,
      async read(sql, values) {
        const { target } = link;
        const { include, where: given, orderBy } = baseQueryOf(target);
        const readable = access.of(target, ["read"], caller);
        const view = views.of(include);
        const condition = conditionOf(target, definitions, given);
        const order = orderOf(target, definitions, orderBy);
        if (view === undefined || condition === undefined || order === undefined)
          throw validationError({
            include: [
              `The relation ${name} cannot be included: the code module of ${target.name} gives arguments that only Prisma knows.`,
            ],
          });
        const { statement, sql: record } = view;
        const where = allOf([condition, readable]);
        const take = link.isMany ? { take: mostRelated } : {};
        const reading = { definition, link, statement, where, order, ...take };
        const lists =
          record === undefined
            ? (await readLinkedTo(sql, reading, values)).map((raws) =>
                (link.isMany ? raws : raws.slice(0, 1)).map((raw) => view.json(raw)).join(","),
              )
            : await readLinkedJson(sql, { ...reading, record }, values);
        return lists.map((list) => (link.isMany ? `[${list}]` : list || "null"));
      },
    };
  };
}
