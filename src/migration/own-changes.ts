import type { Client } from "pg";
import { partsOfTable } from "../db/names.ts";
import { splitAt } from "../mapping/sql-text.ts";
import { keyOf, keyOfObject, placeOf, type LiveObject } from "./live-objects.ts";
import type { LiveSchema } from "./live-tables.ts";
import { isSame, type MadeObject } from "./made.ts";
import type { SchemaChange, VisibleParts } from "../db/prisma-internals/schema-engine.ts";
import { clausesOf, readStatement, type Statement, withQuotedSequences } from "./statements.ts";

/** The changes that the schema engine would make to the parts that it may see. */
interface OwnChanges extends Pick<SchemaChange, "warnings" | "impossible"> {
  readonly statements: readonly Statement[];
  /** Keys (`keyOf`) of the parts that the engine saw. */
  readonly seen: ReadonlySet<string>;
}

/**
 * Compares the managed tables, if there are any, with the models.
 *
 * The engine sees the objects that the service made. It also sees objects with the name of a wanted
 * object, because only the engine can compare the two. All other objects are hidden, and stay as
 * they are.
 */
export async function compareOwn({
  client,
  schemaText,
  live,
  managed,
  objects,
  made,
}: {
  readonly client: Client;
  readonly schemaText: string;
  readonly live: LiveSchema;
  readonly managed: readonly string[];
  /** Objects of the managed tables. */
  readonly objects: readonly LiveObject[];
  readonly made: ReadonlyMap<string, MadeObject>;
}): Promise<OwnChanges> {
  if (managed.length === 0) return { statements: [], warnings: [], impossible: [], seen: new Set() };
  const others = live.relations.map(({ name }) => name).filter((name) => !managed.includes(name));
  const externalTables = [...others.map(qualified), ...live.dotted];
  const compare = async (shown: readonly LiveObject[]): Promise<OwnChanges> => {
    const visible = visiblePartsOf(managed, shown);
    // Loaded only for a comparison, because most starts have nothing to migrate.
    const { compareSchema } = await import("../db/prisma-internals/schema-engine.ts");
    const change = await compareSchema({
      client,
      schemaText,
      externalTables,
      externalEnums: live.enums,
      visible,
    });
    // The schemas have their own step.
    const scripts = withQuotedSequences(change.statements).filter((sql) => !sql.startsWith("CREATE SCHEMA "));
    const texts = scripts.flatMap((script) => splitAt(script, ";")).filter((text) => text !== "");
    const statements = withTables(texts.map(readStatement));
    const seen = new Set(shown.filter((object) => isSeen(object, visible)).map(keyOfObject));
    return { statements, warnings: change.warnings, impossible: change.impossible, seen };
  };
  const isOwn = (object: LiveObject): boolean => {
    const known = made.get(keyOfObject(object));
    return known?.isMade === true && isSame(object, known);
  };

  const own = await compare(objects.filter(isOwn));
  const lacking = new Set(
    clausesOf(own.statements).flatMap(({ table, clause: { action, kind, name } }) =>
      action !== "add" || kind === "sequence" ? [] : [keyOf(kind, table, name)],
    ),
  );
  const isLacking = (object: LiveObject): boolean =>
    lacking.has(keyOfObject(object)) && (object.isPlain || made.has(keyOfObject(object)));
  if (!objects.some((object) => !isOwn(object) && isLacking(object))) return own;
  return compare(objects.filter((object) => isOwn(object) || isLacking(object)));
}

/**
 * Adds the table to statements that drop a sequence, and the schema to their SQL. The engine omits
 * both, and writes the statement after the change of the sequence's column.
 */
function withTables(statements: readonly Statement[]): readonly Statement[] {
  let last = "";
  return statements.map((statement) => {
    const { table, clauses } = statement;
    last = table ?? last;
    const [clause] = clauses;
    if (clause?.kind !== "sequence" || clause.action !== "drop") return statement;
    const sql = `DROP SEQUENCE ${placeOf({ table: last, name: clause.name })}`;
    return { ...statement, table: last, sql };
  });
}

function qualified(table: string): string {
  const { schema, name } = partsOfTable(table);
  return `${schema}.${name}`;
}

function isSeen({ kind, table, name }: LiveObject, visible: VisibleParts): boolean {
  if (kind === "index") return visible.index(table, name);
  return kind === "constraint" ? visible.foreignKey(table, name) : visible.column(table, name);
}

function visiblePartsOf(managed: readonly string[], shown: readonly LiveObject[]): VisibleParts {
  const keys = new Map(shown.map((object) => [keyOfObject(object), object]));
  const column = (table: string, name: string): boolean =>
    !managed.includes(table) || keys.has(keyOf("column", table, name));
  const isWhole = (kind: "index" | "constraint", table: string, name: string): boolean => {
    const object = keys.get(keyOf(kind, table, name));
    // An index on a hidden column would refer the engine to a missing column.
    return object?.columns.every((one) => column(table, one)) === true;
  };
  return {
    column,
    index: (table, name) => !managed.includes(table) || isWhole("index", table, name),
    // The engine refuses foreign keys into schemas without a model, even those of other tables.
    foreignKey: (table, name) => managed.includes(table) && isWhole("constraint", table, name),
  };
}
