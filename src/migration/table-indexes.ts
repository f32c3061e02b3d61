import { fittingName, partsOfTable, quoteName, quoteTable, quoteText } from "../db/names.ts";
import type { Definition } from "../mapping/definition.ts";
import { lossOf, sentenceStart } from "./judge-changes.ts";
import { keyOf, placeOf, type LiveObject } from "./live-objects.ts";
import { isSame, type MadeObject } from "./made.ts";
import type { ChecksPlan } from "./value-checks.ts";

/** An index that the key `indexes` of a mapping file requires. */
export interface WantedIndex {
  readonly table: string;
  readonly name: string;
  /** The SQL after the table in CREATE INDEX. */
  readonly content: string;
}

const ending = "_svc_idx";
/**
 * Start of an index's comment, which holds the requested definition because PostgreSQL rewrites
 * conditions.
 */
const sign = "svc index: ";

/** Returns the indexes of a definition, each with a name derived from its fields. */
export function tableIndexesOf({ table, fields, indexes }: Definition): readonly WantedIndex[] {
  const taken = new Map<string, number>();
  return indexes.map(({ fields: names, where, type }) => {
    const columns = names.map((name) => fields.find((field) => field.name === name)?.column ?? name);
    const stem = [partsOfTable(table).name, ...columns].join("_");
    const count = (taken.get(stem) ?? 0) + 1;
    taken.set(stem, count);
    const condition = where === undefined ? "" : ` WHERE (${where})`;
    return {
      table,
      name: fittingName(stem, count === 1 ? ending : `${ending}_${count}`),
      content: `USING ${type} (${columns.map(quoteName).join(", ")})${condition}`,
    };
  });
}

/**
 * Returns whether an index comes from `indexes`. The schema engine does not know these indexes. Its
 * own index of a column `svc` has a name with their ending.
 */
export function isTableIndex({ kind, table, name, columns, comment }: LiveObject): boolean {
  if (kind !== "index") return false;
  const ofEngine = `${partsOfTable(table).name}_${columns.join("_")}_idx`;
  return comment?.startsWith(sign) === true || (/_svc_idx(?:_\d+)?$/.test(name) && name !== ofEngine);
}

/**
 * Plans the indexes of the managed tables like `planValueChecks` plans their checks.
 *
 * @param dropped Keys (`keyOf`) of dropped objects, including those dropped together with a column
 *   that is added again.
 */
export function planTableIndexes({
  indexes,
  objects,
  made,
  dropped,
}: {
  readonly indexes: readonly WantedIndex[];
  readonly objects: readonly LiveObject[];
  readonly made: ReadonlyMap<string, MadeObject>;
  readonly dropped: ReadonlySet<string>;
}): ChecksPlan {
  const live = new Map(
    objects
      .filter(isTableIndex)
      .map((one) => [keyOf("index", one.table, one.name), one] as const)
      .filter(([key]) => !dropped.has(key)),
  );
  const isOurs = (object: LiveObject): boolean => {
    const known = made.get(keyOf("index", object.table, object.name));
    return known?.isMade === true && isSame(object, known);
  };
  const wanted = indexes.map((index) => {
    const key = keyOf("index", index.table, index.name);
    return { ...index, key, there: live.get(key), comment: sign + index.content };
  });
  const comes = wanted.filter(({ there, comment }) => there?.comment !== comment);
  const keys = new Set(wanted.map(({ key }) => key));
  const ended = [...live].flatMap(([key, object]) => (!keys.has(key) && isOurs(object) ? [object] : []));
  const replaced = comes.flatMap(({ there }) => (there !== undefined && isOurs(there) ? [there] : []));
  const goes = [...ended, ...replaced];
  return {
    before: goes.map(({ table, name }) => ({
      title: `${table}: drop the index ${name}`,
      sql: `DROP INDEX ${placeOf({ table, name })}`,
    })),
    after: comes.map(({ table, name, content, comment }) => ({
      title: `${table}: make the index ${name}`,
      sql:
        `CREATE INDEX ${quoteName(name)} ON ${quoteTable(table)} ${content};\n` +
        `COMMENT ON INDEX ${placeOf({ table, name })} IS ${quoteText(comment)}`,
    })),
    losses: ended
      // An index of renamed columns is created again under another name, which is no loss.
      .filter(({ table, definition }) =>
        comes.every((index) => index.table !== table || columnsIn(index.content) !== columnsIn(definition)),
      )
      .map((object) => lossOf(object, true)),
    impossible: comes.flatMap(({ there, name, content }) =>
      there === undefined || isOurs(there)
        ? []
        : [
            `${sentenceStart(there)} is ${there.definition}, and svc did not make it: it is not touched. Give it another name; the mapping file asks for ${content} under ${name}.`,
          ],
    ),
    checks: wanted.map((index) => ({
      kind: "index",
      table: index.table,
      name: index.name,
      isMade: true,
      isNew: comes.includes(index),
    })),
    dropped: new Set(goes.map(({ table, name }) => keyOf("index", table, name))),
  };
}

/** Returns the type and the columns of an index, from PostgreSQL's definition or from `content`. */
function columnsIn(text: string): string | undefined {
  const from = text.indexOf("USING ");
  return from < 0 ? undefined : text.slice(from, text.indexOf(")", from) + 1).replaceAll('"', "");
}

/** Merges two plans. */
export function joinedPlans(one: ChecksPlan, other: ChecksPlan): ChecksPlan {
  return {
    before: [...one.before, ...other.before],
    after: [...one.after, ...other.after],
    losses: [...one.losses, ...other.losses],
    impossible: [...one.impossible, ...other.impossible],
    checks: [...one.checks, ...other.checks],
    dropped: new Set([...one.dropped, ...other.dropped]),
  };
}
