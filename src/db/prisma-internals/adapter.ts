import { PrismaPg } from "@prisma/adapter-pg";
import type { SqlDriverAdapterFactory } from "@prisma/client/runtime/client";
import type { SqlQuery, SqlQueryable } from "@prisma/driver-adapter-utils";
import { DatabaseError, type Pool } from "pg";
import { noTracing, type Tracing } from "../../telemetry/tracing.ts";
import { columnsOf } from "../fault-columns.ts";
import { createStatementNames, type StatementNames } from "../statement-name.ts";
import { parseTextList } from "../text-list.ts";
import { traceComment } from "../traceparent.ts";

type ListParser = NonNullable<
  NonNullable<ConstructorParameters<typeof PrismaPg>[1]>["userDefinedTypeParser"]
>;

const maxStatements = 500;
const maxStatementParameters = 32;

/**
 * Creates the Prisma adapter over a pool that outlives it.
 *
 * @param schemaText The schema of the statements, the salt of their names.
 * @param tracing When on, writes carry the `traceparent` of their span.
 */
export function createAdapter({
  pool,
  isEmbedded,
  schemaText = "",
  tracing = noTracing,
}: {
  readonly pool: Pool;
  readonly isEmbedded: boolean;
  readonly schemaText?: string;
  readonly tracing?: Tracing | undefined;
}): SqlDriverAdapterFactory {
  const prepare = <Q extends SqlQueryable>(queryable: Q): Q =>
    tracing.isOn ? withTraceparent(keepConstraint(queryable), tracing) : keepConstraint(queryable);
  const factory = new PrismaPg(pool, {
    userDefinedTypeParser: createListParser(),
    statementNameGenerator: createStatementNamer(createStatementNames(isEmbedded, schemaText)),
  });
  return {
    provider: factory.provider,
    adapterName: factory.adapterName,
    async connect() {
      const adapter = await factory.connect();
      const startTransaction = adapter.startTransaction.bind(adapter);
      adapter.startTransaction = async (level) => prepare(await startTransaction(level));
      return prepare(adapter);
    },
  };
}

/**
 * Creates the function that names statements, so that the server parses each once per connection.
 * The empty name means "do not keep it". Lists in a query (`IN`, many rows) make a new text for
 * every length. The server keeps each text for the life of the connection. Statements with many
 * parameters, and all after the first 500, therefore stay unnamed.
 */
export function createStatementNamer(
  nameOf: StatementNames,
): (query: { readonly sql: string; readonly args: readonly unknown[] }) => string {
  const names = new Map<string, string>();
  return ({ sql, args }) => {
    const known = names.get(sql);
    if (known !== undefined) return known;
    const isKept = args.length <= maxStatementParameters && names.size < maxStatements;
    const name = isKept ? nameOf(sql) : undefined;
    if (name !== undefined) names.set(sql, name);
    return name ?? "";
  };
}

/**
 * Ends each write with the `traceparent` of its span. Prisma's own `comments` copy the whole query
 * for every statement, the request's body included.
 */
function withTraceparent<Queryable extends SqlQueryable>(queryable: Queryable, tracing: Tracing): Queryable {
  const commented = (query: SqlQuery): SqlQuery => {
    const comment = writes.test(query.sql) ? traceComment(tracing) : "";
    return comment === "" ? query : { ...query, sql: query.sql + comment };
  };
  const queryRaw = queryable.queryRaw.bind(queryable);
  const executeRaw = queryable.executeRaw.bind(queryable);
  queryable.queryRaw = (query) => queryRaw(commented(query));
  queryable.executeRaw = (query) => executeRaw(commented(query));
  return queryable;
}

const writes = /^\s*(?:INSERT|UPDATE|DELETE)\b/i;

/**
 * Creates a parser of lists of user-defined types, such as enums, like adapter-pg's parser of
 * built-in types. Without it, Prisma gets the text `{open,paid}` for a list, and fails.
 */
function createListParser(): ListParser {
  const areLists = new Map<number, boolean>();
  return async (oid, value, queryable) => {
    if (typeof value !== "string" || !value.startsWith("{")) return value;
    let isList = areLists.get(oid);
    if (isList === undefined) {
      // Uses the connection that is being read, because another one could wait for its transaction
      // forever.
      const found = await queryable.queryRaw({
        sql: `SELECT FROM pg_type WHERE oid = ${oid} AND typcategory = 'A'`,
        args: [],
        argTypes: [],
      });
      isList = found.rows.length > 0;
      areLists.set(oid, isList);
    }
    return isList ? parseTextList(value) : value;
  };
}

/** The parts of adapter-pg 7.10's errors that `keepConstraint` changes. */
interface Converted {
  readonly cause?: { constraint?: { fields: readonly string[] } | { index: string } };
}

/**
 * Keeps the server's details of a violated constraint, of which adapter-pg only keeps the name.
 * Restores the columns where Prisma expects them (`cause.constraint.fields`), and the name of a
 * check constraint.
 */
function keepConstraint<Queryable>(queryable: Queryable): Queryable {
  const hooked = queryable as { onError(error: unknown): never };
  const convert = hooked.onError.bind(queryable);
  hooked.onError = (error) => {
    try {
      return convert(error);
    } catch (converted: unknown) {
      const { cause } = converted as Converted;
      const constraint = error instanceof DatabaseError ? constraintOf(error) : undefined;
      if (cause !== undefined && constraint !== undefined) cause.constraint = constraint;
      throw converted;
    }
  };
  return queryable;
}

function constraintOf(error: DatabaseError): { fields: readonly string[] } | { index: string } | undefined {
  const fields = columnsOf(error);
  if (fields.length > 0) return { fields };
  return error.constraint === undefined ? undefined : { index: error.constraint };
}
