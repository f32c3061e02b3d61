import { keyOf } from "./live-objects.ts";
import { checkEnding, type PartsPlan, type WantedPart } from "./planned-parts.ts";
import type { RowChecks } from "./row-checks.ts";
import { counted } from "../kit/counted.ts";
import { fittingName, partsOfTable, quoteName, quoteTable, quoteText } from "../db/names.ts";

/** A column that may have only the listed values (or null). */
export interface ValueCheck {
  readonly table: string;
  readonly column: string;
  readonly isList: boolean;
  readonly values: readonly string[];
}

/** Returns the CHECK constraint of an enum column. */
export function checkPartOf(check: ValueCheck): WantedPart {
  const { table, column } = check;
  const name = nameOf(check);
  const condition = conditionOf(check);
  const asked = `CHECK (${condition})`;
  return {
    kind: "constraint",
    table,
    name,
    asked,
    comment: condition,
    make: {
      title: `${table}: check the values of ${column}`,
      sql:
        `ALTER TABLE ${quoteTable(table)} ADD CONSTRAINT ${quoteName(name)} ${asked};\n` +
        `COMMENT ON CONSTRAINT ${quoteName(name)} ON ${quoteTable(table)} IS ${quoteText(condition)}`,
    },
    replaces: (object) => object.table === table && object.columns.includes(column),
  };
}

function nameOf({ table, column }: ValueCheck): string {
  return fittingName(`${partsOfTable(table).name}_${column}`, checkEnding);
}

/** Lists of texts in PostgreSQL's words. */
const lists = /^text\[\](?: |$)/;

/**
 * Counts the rows that the new checks would refuse, so that a plan reports them.
 *
 * @param dropped Keys (`keyOf`) of dropped objects. Their columns have no values, also when added.
 */
export async function findUnlisted({
  client,
  checks,
  plan,
  objects,
  dropped,
}: Pick<RowChecks, "client" | "objects"> & {
  readonly checks: readonly ValueCheck[];
  readonly plan: PartsPlan;
  readonly dropped: ReadonlySet<string>;
}): Promise<readonly string[]> {
  const isNew = (check: ValueCheck): boolean =>
    plan.parts.some((one) => one.isNew && one.table === check.table && one.name === nameOf(check));
  const isThere = ({ table, column, isList }: ValueCheck): boolean =>
    !dropped.has(keyOf("column", table, column)) &&
    objects.some(
      (one) =>
        one.kind === "column" &&
        one.table === table &&
        one.name === column &&
        (!isList || lists.test(one.definition)),
    );
  const sentences: string[] = [];
  for (const check of checks.filter((one) => isThere(one) && isNew(one))) {
    const { table, column, values } = check;
    const { rows } = await client.query<{ count: string }>(
      `SELECT count(*) FROM ${quoteTable(table)} WHERE NOT (${conditionOf(check, "::text")})`,
    );
    const count = Number(rows[0]?.count);
    if (count === 0) continue;
    const others = counted(count, "row has", "rows have");
    sentences.push(
      `The column ${column} of the table ${table} is to hold one of ${values.join(", ")}, and ${others} another value. Change the values first. To rename a value, list both names, migrate, change the rows, and then remove the old name.`,
    );
  }
  return sentences;
}

/** @param cast Cast of a column that is no list, which may have another type yet. */
function conditionOf({ column, isList, values }: ValueCheck, cast = ""): string {
  const list = values.map(quoteText).join(", ");
  return isList
    ? `${quoteName(column)} <@ ARRAY[${list}]::text[]`
    : `${quoteName(column)}${cast} IN (${list})`;
}
