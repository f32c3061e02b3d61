import type { ClientBase } from "pg";
import { lossOf, sentenceStart } from "./judge-changes.ts";
import { keyOf, type LiveObject } from "./live-objects.ts";
import { isSame, isSigned, type MadeObject } from "./made.ts";
import type { Step } from "./core-migrations.ts";
import { counted } from "../kit/counted.ts";
import { fittingName, partsOfTable, quoteName, quoteTable, quoteText } from "../db/names.ts";

/** A column that may have only the listed values (or null). */
export interface ValueCheck {
  readonly table: string;
  readonly column: string;
  readonly isList: boolean;
  readonly values: readonly string[];
}

/** Planned changes of the CHECK constraints of enum columns, or of indexes. */
export interface ChecksPlan {
  /** Steps before the columns change. */
  readonly before: readonly Step[];
  /** Steps after the columns changed. */
  readonly after: readonly Step[];
  readonly losses: readonly string[];
  readonly impossible: readonly string[];
  /** The checks and indexes of the mapping files after the plan. */
  readonly checks: readonly {
    readonly kind: "constraint" | "index";
    readonly table: string;
    readonly name: string;
    readonly isMade: boolean;
    readonly isNew: boolean;
  }[];
  /** Keys (`keyOf`) of the dropped checks. */
  readonly dropped: ReadonlySet<string>;
}

const ending = "_svc_values";

/**
 * Plans the CHECK constraints. PostgreSQL changes the wording of a condition, so each constraint
 * has its condition as a comment. The comment also marks the service's checks in a database
 * without a record of them.
 *
 * @param objects Objects of every managed table: a check of the service that is no longer wanted is
 *   dropped.
 * @param unrecorded The tables of a version without a record.
 */
export function planValueChecks({
  checks,
  objects,
  made,
  unrecorded,
}: {
  readonly checks: readonly ValueCheck[];
  readonly objects: readonly LiveObject[];
  readonly made: ReadonlyMap<string, MadeObject>;
  readonly unrecorded: ReadonlySet<string>;
}): ChecksPlan {
  const live = new Map(
    objects
      .filter(({ what }) => what === "check")
      .map((one) => [keyOf("constraint", one.table, one.name), one]),
  );
  const wanted = checks.map((check) => {
    const name = nameOf(check);
    const key = keyOf("constraint", check.table, name);
    return { ...check, name, key, condition: conditionOf(check), there: live.get(key) };
  });
  const isUpToDate = ({ there, condition }: (typeof wanted)[number]): boolean => there?.comment === condition;
  const outdated = wanted.filter((check) => check.there !== undefined && !isUpToDate(check));
  const keys = new Set(wanted.map(({ key }) => key));
  const isOurs = (object: LiveObject): boolean => {
    const key = keyOf("constraint", object.table, object.name);
    const known = made.get(key);
    if (known?.isMade === true) return isSame(object, known);
    // A restore without the schema `svc` brings the check, and not its record.
    if (keys.has(key)) return isSigned(object);
    const isUnknown = known === undefined && unrecorded.has(object.table);
    return isUnknown && object.name.endsWith(ending) && isSigned(object);
  };
  const ended = [...live]
    .filter(([key, object]) => !keys.has(key) && isOurs(object))
    .map(([, object]) => object);
  const goes = [
    ...ended,
    ...outdated.flatMap(({ there }) => (there !== undefined && isOurs(there) ? [there] : [])),
  ];
  const comes = wanted.filter((check) => !isUpToDate(check));
  return {
    before: goes.map(({ table, name }) => ({
      title: `${table}: drop the check ${name}`,
      sql: `ALTER TABLE ${quoteTable(table)} DROP CONSTRAINT ${quoteName(name)}`,
    })),
    after: comes.map(({ table, column, name, condition }) => ({
      title: `${table}: check the values of ${column}`,
      sql:
        `ALTER TABLE ${quoteTable(table)} ADD CONSTRAINT ${quoteName(name)} CHECK (${condition});\n` +
        `COMMENT ON CONSTRAINT ${quoteName(name)} ON ${quoteTable(table)} IS ${quoteText(condition)}`,
    })),
    losses: ended
      // A renamed column gets a check of another name, which is no loss.
      .filter(({ table, columns }) =>
        comes.every((check) => check.table !== table || !columns.includes(check.column)),
      )
      .map((object) => lossOf(object, true)),
    impossible: outdated.flatMap(({ there, condition }) =>
      there === undefined || isOurs(there)
        ? []
        : [
            `${sentenceStart(there)} is ${there.definition}, and svc did not make it: it is not touched. Give it another name; the mapping file asks for CHECK (${condition}) under this one.`,
          ],
    ),
    checks: wanted.map((check) => {
      const isMade = check.there === undefined || !isUpToDate(check) || isOurs(check.there);
      return {
        kind: "constraint",
        table: check.table,
        name: check.name,
        isMade,
        isNew: comes.includes(check),
      };
    }),
    dropped: new Set(goes.map(({ table, name }) => keyOf("constraint", table, name))),
  };
}

function nameOf({ table, column }: ValueCheck): string {
  return fittingName(`${partsOfTable(table).name}_${column}`, ending);
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
}: {
  readonly client: ClientBase;
  readonly checks: readonly ValueCheck[];
  readonly plan: ChecksPlan;
  readonly objects: readonly LiveObject[];
  readonly dropped: ReadonlySet<string>;
}): Promise<readonly string[]> {
  const isNew = (check: ValueCheck): boolean =>
    plan.checks.some((one) => one.isNew && one.table === check.table && one.name === nameOf(check));
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
      `The column ${column} of the table ${table} is to hold one of ${values.join(", ")}, and ${others} another value. Change the values first.`,
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
