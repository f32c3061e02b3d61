import type { ObjectKind } from "./live-objects.ts";
import { partsOfTable, quoteName, quoteText, shortTable } from "../db/names.ts";

/** A clause of a schema engine's statement: its action and its object. */
export interface Clause {
  readonly sql: string;
  readonly action: "add" | "drop" | "alter" | "other";
  readonly kind: ObjectKind | "table" | "sequence";
  readonly name: string;
  /** The altered part of a column. */
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

type Reading = readonly [RegExp, (...groups: string[]) => readonly Omit<Clause, "sql">[]];

/** Names of tables and fields contain no quotes: the JSON Schema of mapping files refuses them. */
const named = '"([^"]+)"';
/** A table, or an index in a DROP, with its schema unless that is `public`. */
const placed = '((?:"[^"]+"\\.)?"[^"]+")';

/** Converts a table or index name of the engine's statement to the form of mapping files. */
function unquoted(text: string | undefined): string {
  return shortTable((text ?? "").replaceAll('"', ""));
}

function schemaOf(text: string | undefined): string {
  return partsOfTable(unquoted(text)).schema;
}

/** Returns a name without its schema, which is known from the table. */
function lastOf(text: string): string {
  return partsOfTable(unquoted(text)).name;
}

const clauseReadings: readonly Reading[] = [
  [new RegExp(`^ADD COLUMN\\s+${named}`), (name = "") => [{ action: "add", kind: "column", name }]],
  [new RegExp(`^DROP COLUMN ${named}$`), (name = "") => [{ action: "drop", kind: "column", name }]],
  [
    new RegExp(`^ALTER COLUMN ${named} SET DATA TYPE (.+)$`),
    (name = "", type = "") => [{ action: "alter", kind: "column", name, part: "type", type }],
  ],
  [
    new RegExp(`^ALTER COLUMN ${named} (?:SET|DROP) NOT NULL$`),
    (name = "") => [{ action: "alter", kind: "column", name, part: "nullability" }],
  ],
  [
    new RegExp(`^ALTER COLUMN ${named} (?:SET|DROP) DEFAULT`),
    (name = "") => [{ action: "alter", kind: "column", name, part: "default" }],
  ],
  [
    new RegExp(`^ADD CONSTRAINT ${named} (PRIMARY|UNIQUE|FOREIGN)`),
    (name = "", kind = "") => [{ action: "add", kind: kind === "FOREIGN" ? "constraint" : "index", name }],
  ],
  // The objects of the table show whether this is about an index or a foreign key.
  [new RegExp(`^DROP CONSTRAINT ${named}$`), (name = "") => [{ action: "drop", kind: "constraint", name }]],
  [
    new RegExp(`^RENAME CONSTRAINT ${named} TO ${named}$`),
    (from = "", to = "") => [
      { action: "drop", kind: "constraint", name: from },
      { action: "add", kind: "constraint", name: to },
    ],
  ],
];

const statementReadings: readonly Reading[] = [
  [
    new RegExp(`^CREATE (?:UNIQUE )?INDEX ${named} ON `),
    (name = "") => [{ action: "add", kind: "index", name }],
  ],
  [
    new RegExp(`^DROP INDEX ${placed}$`),
    (name = "") => [{ action: "drop", kind: "index", name: lastOf(name) }],
  ],
  [
    new RegExp(`^ALTER INDEX ${placed} RENAME TO ${named}$`),
    (from = "", to = "") => [
      { action: "drop", kind: "index", name: lastOf(from) },
      { action: "add", kind: "index", name: to },
    ],
  ],
  [new RegExp(`^DROP SEQUENCE ${named}$`), (name = "") => [{ action: "drop", kind: "sequence", name }]],
  [
    new RegExp(`^CREATE SEQUENCE ${placed}$`),
    (name = "") => [{ action: "add", kind: "sequence", name: lastOf(name) }],
  ],
  [
    new RegExp(`^ALTER SEQUENCE ${placed} OWNED BY `),
    (name = "") => [{ action: "other", kind: "sequence", name: lastOf(name) }],
  ],
];

/**
 * Reads a statement of the schema engine.
 *
 * @throws Error for a statement of another form, which must not run because its effect is unknown.
 */
export function readStatement(sql: string): Statement {
  const [altered, given] = new RegExp(`^ALTER TABLE ${placed}\\s+`).exec(sql) ?? [];
  if (altered !== undefined) {
    const table = unquoted(given);
    const clauses = topLevelParts(sql.slice(altered.length)).flatMap((part) =>
      readClause(part, clauseReadings),
    );
    return { sql, table, schema: schemaOf(given), head: altered, clauses };
  }
  const [, place] = new RegExp(`^CREATE TABLE ${placed} \\(`).exec(sql) ?? [];
  if (place !== undefined) {
    const created = unquoted(place);
    const key = new RegExp(`^\\s+CONSTRAINT ${named} PRIMARY KEY`, "m").exec(sql)?.[1];
    const parts: readonly Clause[] = [
      { sql, action: "add", kind: "table", name: created },
      ...(key === undefined ? [] : [{ sql, action: "add", kind: "index", name: key } as const]),
    ];
    return { sql, table: created, schema: schemaOf(place), head: "", clauses: parts };
  }
  const on = new RegExp(`^CREATE (?:UNIQUE )?INDEX "[^"]+" ON ${placed}`).exec(sql)?.[1];
  const index = new RegExp(`^(?:DROP|ALTER) INDEX ${placed}`).exec(sql)?.[1];
  return {
    sql,
    table: on === undefined ? undefined : unquoted(on),
    schema: schemaOf(on ?? index),
    head: "",
    clauses: readClause(sql, statementReadings),
  };
}

function readClause(sql: string, readings: readonly Reading[]): readonly Clause[] {
  for (const [pattern, read] of readings) {
    const match = pattern.exec(sql);
    if (match !== null) return read(...match.slice(1)).map((clause) => ({ ...clause, sql }));
  }
  throw new Error(`The schema engine gave a statement of a form that is not known: ${sql}`);
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

/** Splits at separators outside quotes and brackets. */
export function topLevelParts(sql: string, separator = ","): readonly string[] {
  const parts: string[] = [];
  let start = 0;
  let depth = 0;
  // Matches quoted names, texts with backslashes, other texts, or one character.
  for (const { 0: token, index } of sql.matchAll(/"[^"]*"|\bE'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|[^]/g)) {
    if (token === "(" || token === "[") depth++;
    if (token === ")" || token === "]") depth--;
    if (token !== separator || depth > 0) continue;
    parts.push(sql.slice(start, index));
    start = index + 1;
  }
  return [...parts, sql.slice(start)].map((part) => part.trim()).filter((part) => part !== "");
}
