import { fittingName, partsOfTable, quoteName, quoteTable, quoteText } from "../db/names.ts";
import type { Definition } from "../mapping/definition.ts";
import { placeOf, type LiveObject } from "./live-objects.ts";
import type { WantedPart } from "./planned-parts.ts";

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

export function indexPartOf({ table, name, content }: WantedIndex): WantedPart {
  const comment = sign + content;
  return {
    kind: "index",
    table,
    name,
    asked: content,
    comment,
    make: {
      title: `${table}: make the index ${name}`,
      sql:
        `CREATE INDEX ${quoteName(name)} ON ${quoteTable(table)} ${content};\n` +
        `COMMENT ON INDEX ${placeOf({ table, name })} IS ${quoteText(comment)}`,
    },
    replaces: (object) => object.table === table && columnsIn(object.definition) === columnsIn(content),
  };
}

/** Returns the type and the columns of an index, from PostgreSQL's definition or from `content`. */
function columnsIn(text: string): string | undefined {
  const from = text.indexOf("USING ");
  return from < 0 ? undefined : text.slice(from, text.indexOf(")", from) + 1).replaceAll('"', "");
}
