import type { ObjectKind } from "./live-objects.ts";
import { partsOfTable, quoteName, quoteText, shortTable, tablesSchema } from "../db/names.ts";
import { splitAt } from "../mapping/sql-text.ts";

/** A clause of a schema engine's statement: its action and its object. */
export interface Clause {
  readonly sql: string;
  readonly action: "add" | "drop" | "alter" | "other";
  readonly kind: ObjectKind | "table" | "sequence";
  readonly name: string;
  readonly part?: ColumnPart;
  /** The new type of a column, or `SERIAL` or `BIGSERIAL`, which are no types. */
  readonly type?: string;
}

/** The parts of a column that can change. */
export type ColumnPart = "type" | "nullability" | "default";

/** A statement of the schema engine. */
export interface Statement {
  readonly sql: string;
  /** Undefined for `DROP INDEX` and sequences, whose statements name no table. */
  readonly table: string | undefined;
  /** The schema of the changed object. */
  readonly schema: string;
  /** The statement up to its first clause; only `ALTER TABLE` has more than one. */
  readonly head: string;
  readonly clauses: readonly Clause[];
}

/** A table or index of a statement, with its schema unless that is `public`. */
const placed = '((?:"[^"]+"\\.)?"[^"]+")';
/**
 * The name of the object of a form, after a schema that is known from the table. Names of tables
 * and fields contain no quotes: the JSON Schema of mapping files refuses them.
 */
const named = '(?:"(?<schema>[^"]+)"\\.)?"(?<name>[^"]+)"';

/** Converts the name of a table in the engine's statement to the form of mapping files. */
function unquoted(text: string): string {
  return shortTable(text.replaceAll('"', ""));
}

/**
 * The forms of clauses and statements. A rename counts as two: a drop of one name and an add of
 * another.
 */
const forms = (
  [
    ["ADD COLUMN\\s+NAME", { action: "add", kind: "column" }],
    ["DROP COLUMN NAME$", { action: "drop", kind: "column" }],
    ["ALTER COLUMN NAME SET DATA TYPE (?<type>.+)$", { action: "alter", kind: "column", part: "type" }],
    ["ALTER COLUMN NAME (?:SET|DROP) NOT NULL$", { action: "alter", kind: "column", part: "nullability" }],
    ["ALTER COLUMN NAME (?:SET|DROP) DEFAULT", { action: "alter", kind: "column", part: "default" }],
    ["ADD CONSTRAINT NAME (?:PRIMARY|UNIQUE)", { action: "add", kind: "index" }],
    ["ADD CONSTRAINT NAME FOREIGN", { action: "add", kind: "constraint" }],
    // The objects of the table show whether this is about an index or a foreign key.
    ["DROP CONSTRAINT NAME$", { action: "drop", kind: "constraint" }],
    ["RENAME CONSTRAINT NAME TO ", { action: "drop", kind: "constraint" }],
    ["RENAME CONSTRAINT .+ TO NAME$", { action: "add", kind: "constraint" }],
    ["CREATE (?:UNIQUE )?INDEX NAME ON ", { action: "add", kind: "index" }],
    ["DROP INDEX NAME$", { action: "drop", kind: "index" }],
    ["ALTER INDEX NAME RENAME TO ", { action: "drop", kind: "index" }],
    ["ALTER INDEX .+ RENAME TO NAME$", { action: "add", kind: "index" }],
    ["DROP SEQUENCE NAME$", { action: "drop", kind: "sequence" }],
    ["CREATE SEQUENCE NAME$", { action: "add", kind: "sequence" }],
    ["ALTER SEQUENCE NAME OWNED BY ", { action: "other", kind: "sequence" }],
  ] as const satisfies readonly (readonly [form: string, clause: Omit<Clause, "sql" | "name" | "type">])[]
).map(([form, clause]) => ({ clause, pattern: new RegExp(`^${form.replace(/\bNAME\b/, named)}`) }));

/**
 * Reads a statement of the schema engine.
 *
 * @throws Error for a statement of another form, which must not run because its effect is unknown.
 */
export function readStatement(sql: string): Statement {
  const [altered, given] = new RegExp(`^ALTER TABLE ${placed}\\s+`).exec(sql) ?? [];
  if (altered !== undefined) {
    const table = unquoted(given ?? "");
    const clauses = splitAt(sql.slice(altered.length), ",").flatMap(readClauses);
    return { sql, table, schema: partsOfTable(table).schema, head: altered, clauses };
  }
  const [, place] = new RegExp(`^CREATE TABLE ${placed} \\(`).exec(sql) ?? [];
  if (place !== undefined) {
    const created = unquoted(place);
    const key = new RegExp(`^\\s+CONSTRAINT ${named} PRIMARY KEY`, "m").exec(sql)?.groups?.["name"];
    const parts: readonly Clause[] = [
      { sql, action: "add", kind: "table", name: created },
      ...(key === undefined ? [] : [{ sql, action: "add", kind: "index", name: key } as const]),
    ];
    return { sql, table: created, schema: partsOfTable(created).schema, head: "", clauses: parts };
  }
  const on = new RegExp(`^CREATE (?:UNIQUE )?INDEX "[^"]+" ON ${placed}`).exec(sql)?.[1];
  const table = on === undefined ? undefined : unquoted(on);
  const index = new RegExp(`^(?:DROP|ALTER) INDEX ${named}`).exec(sql)?.groups;
  const schema = table === undefined ? (index?.["schema"] ?? tablesSchema) : partsOfTable(table).schema;
  return { sql, table, schema, head: "", clauses: readClauses(sql) };
}

function readClauses(sql: string): readonly Clause[] {
  const found = forms.flatMap(({ pattern, clause }) => {
    const { name, type } = pattern.exec(sql)?.groups ?? {};
    return name === undefined ? [] : [{ ...clause, sql, name, ...(type !== undefined && { type }) }];
  });
  if (found.length > 0) return found;
  throw new Error(`The schema engine gave a statement of a form that is not known: ${sql}`);
}

/** A clause and its table; "" when its statement names none. */
export interface TableClause {
  readonly table: string;
  readonly clause: Clause;
}

export function clausesOf(statements: readonly Statement[]): readonly TableClause[] {
  return statements.flatMap(({ table = "", clauses }) => clauses.map((clause) => ({ table, clause })));
}

/** Returns the statement with only the given clauses; undefined without any. */
export function withClauses(statement: Statement, clauses: readonly Clause[]): Statement | undefined {
  if (clauses.length === 0) return undefined;
  if (clauses.length === statement.clauses.length) return statement;
  const parts = [...new Set(clauses.map(({ sql }) => sql))];
  return { ...statement, clauses, sql: statement.head + parts.join(",\n") };
}

/**
 * Quotes the sequences of counting columns, which the engine names without quotes: `"sales".a_seq`.
 */
export function withQuotedSequences(scripts: readonly string[]): readonly string[] {
  const names = scripts.flatMap((script) =>
    [...script.matchAll(/^CREATE SEQUENCE ("[^"\n]+"\.)?([^"\n]+?);?$/gm)].map(
      ([, schema = "", name = ""]) => ({ name: schema + name, quoted: schema + quoteName(name) }),
    ),
  );
  return names.reduce<readonly string[]>(
    (given, { name, quoted }) =>
      given.map((script) =>
        script
          .replaceAll(`CREATE SEQUENCE ${name}`, () => `CREATE SEQUENCE ${quoted}`)
          .replaceAll(`nextval('${name}')`, () => `nextval(${quoteText(quoted)})`)
          .replaceAll(`ALTER SEQUENCE ${name} OWNED`, () => `ALTER SEQUENCE ${quoted} OWNED`),
      ),
    scripts,
  );
}
