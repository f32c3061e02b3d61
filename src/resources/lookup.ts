import { quoteName, quoteTable } from "../db/names.ts";
import { databaseFaultOf } from "../db/prisma-errors.ts";
import type { Sql } from "../db/sql.ts";
import type { Definition, Definitions, FieldType } from "../mapping/definition.ts";
import { parseKey } from "./coerce.ts";
import type { Lookup } from "./rules.ts";

interface LookupOptions {
  /** The resource whose rules ask: its record that is being updated is left aside, those of others are not. */
  readonly own: Definition;
  readonly definitions: Definitions;
  readonly sql: Sql;
}

/** Runs one statement of a look-up. Undefined: the value is one that its column cannot hold. */
type Ask = (options: {
  readonly statement: string;
  readonly values: readonly string[];
  /** Whether the column is known to take the value. */
  readonly isSafe: boolean;
}) => Promise<readonly unknown[] | undefined>;

/**
 * Answers the rules `unique` and `exists` of one resource from the database, by the database's own exact comparison.
 * Plain SQL, because a target may be a table that no resource has.
 */
export function createLookup(options: LookupOptions): Lookup {
  const { sql } = options;
  return lookupBy(options, ({ statement, values }) => unlessUnfit(sql(statement, values)));
}

/**
 * Answers them within a transaction, which then sees what it has written itself.
 *
 * A statement that fails ends the transaction of PostgreSQL, so that a value which may not fit its column is asked for behind a
 * savepoint: two round trips more. One look-up at a time, since the savepoint of one would take back others.
 */
export function createTransactionLookup(options: LookupOptions): Lookup {
  const { sql } = options;
  let last: Promise<unknown> = Promise.resolve();
  return lookupBy(options, ({ statement, values, isSafe }) => {
    const ask = async (): Promise<readonly unknown[] | undefined> => {
      if (isSafe) return sql(statement, values);
      await sql("SAVEPOINT lookup");
      const rows = await unlessUnfit(sql(statement, values));
      await sql(rows === undefined ? "ROLLBACK TO lookup; RELEASE lookup" : "RELEASE lookup");
      return rows;
    };
    const asking = last.then(ask);
    last = asking.catch(() => undefined);
    return asking;
  });
}

async function unlessUnfit(rows: Promise<readonly unknown[]>): Promise<readonly unknown[] | undefined> {
  try {
    return await rows;
  } catch (error) {
    // `abc` for an integer column, a NUL, a number out of range: such a value is in no row.
    if (databaseFaultOf(error).kind === "bad_value") return undefined;
    throw error;
  }
}

function lookupBy({ own, definitions }: LookupOptions, ask: Ask): Lookup {
  const byTable = new Map([...definitions.values()].map((definition) => [definition.table, definition]));

  return {
    async exists({ target, column, value, except }) {
      const text = textOf(value);
      if (text === undefined) return false;
      const definition = definitions.get(target) ?? byTable.get(target);
      const left = definition?.name === own.name ? textOf(except) : undefined;
      const others = left === undefined ? [] : [left];
      const statement = [
        `SELECT 1 FROM ${quoteTable(definition?.table ?? target)} WHERE ${columnOf(definition, column)} = $1`,
        ...others.map(() => `AND ${quoteName(own.key.column)} <> $2`),
        "LIMIT 1",
      ].join(" ");
      const isSafe = fits(definition, column, text);
      return ((await ask({ statement, values: [text, ...others], isSafe })) ?? []).length > 0;
    },
  };
}

/** Whether a column is one that the mapping file made, and of a type of which every value that it could be compared with is known. */
function fits(definition: Definition | undefined, name: string, text: string): boolean {
  if (definition?.isManaged !== true) return false;
  const field = definition.fields.find((one) => one.name === name);
  return (
    field !== undefined && !field.isList && keyTypes.has(field.type) && parseKey(field, text) !== undefined
  );
}

const keyTypes: ReadonlySet<FieldType> = new Set(["Int", "BigInt", "String", "Uuid"]);

/** Rules may name a field or, as for a table without a resource, a column. */
function columnOf(definition: Definition | undefined, name: string): string {
  return quoteName(definition?.fields.find((field) => field.name === name)?.column ?? name);
}

/** The server reads the text as the column's own type. Undefined: no column holds such a value. */
function textOf(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  if (typeof value === "number" || typeof value === "bigint" || typeof value === "boolean")
    return String(value);
  return undefined;
}
