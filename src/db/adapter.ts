import { createHash } from "node:crypto";
import { PrismaPg } from "@prisma/adapter-pg";
import type { SqlDriverAdapterFactory } from "@prisma/client/runtime/client";
import { DatabaseError, type Pool } from "pg";

const maxStatements = 500;
const maxStatementParameters = 32;

/**
 * The Prisma adapter over a pool that outlives it.
 *
 * @param isEmbedded The embedded database has one backend behind many sockets, where the names of prepared
 *   statements would collide: they stay unnamed.
 */
export function createAdapter({
  pool,
  isEmbedded,
}: {
  readonly pool: Pool;
  readonly isEmbedded: boolean;
}): SqlDriverAdapterFactory {
  const factory = new PrismaPg(pool, isEmbedded ? {} : { statementNameGenerator: createStatementNamer() });
  return {
    provider: factory.provider,
    adapterName: factory.adapterName,
    async connect() {
      const adapter = await factory.connect();
      const startTransaction = adapter.startTransaction.bind(adapter);
      adapter.startTransaction = async (level) => keepConstraint(await startTransaction(level));
      return keepConstraint(adapter);
    },
  };
}

/**
 * Names statements, so that the server parses each one once per connection; the empty name means "do not keep it".
 * Lists in a query (`IN`, many rows) make a new text for every length, and the server keeps each one
 * for the life of the connection: those with many parameters, and all after the first 500, stay unnamed.
 */
export function createStatementNamer(): (query: {
  readonly sql: string;
  readonly args: readonly unknown[];
}) => string {
  const names = new Map<string, string>();
  return ({ sql, args }) => {
    const known = names.get(sql);
    if (known !== undefined) return known;
    if (args.length > maxStatementParameters || names.size >= maxStatements) return "";
    const name = `svc_${createHash("sha256").update(sql).digest("base64url").slice(0, 24)}`;
    names.set(sql, name);
    return name;
  };
}

/** What adapter-pg 7.10 throws, as far as it is mended here. */
interface Converted {
  readonly cause?: { constraint?: { fields: readonly string[] } | { index: string } };
}

/**
 * adapter-pg drops what the server says about a broken constraint, except its name. This puts the columns
 * back where Prisma looks for them (`cause.constraint.fields`), and the name of a check constraint.
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

/**
 * The columns that a fault of the server is about; empty when it does not say.
 * The detail is in the server's language, but holds `(tenant, email)=(1, a)` in every one.
 */
export function columnsOf({
  column,
  detail,
}: {
  readonly column?: string | undefined;
  readonly detail?: string | undefined;
}): readonly string[] {
  if (column !== undefined) return [column];
  const list = detail?.match(/\((.+?)\)=\(/)?.[1];
  return list === undefined ? [] : [...list.matchAll(/"((?:[^"]|"")+)"|[^,\s][^,]*/g)].map(nameOf);
}

function nameOf(match: RegExpMatchArray): string {
  return match[1]?.replaceAll('""', '"') ?? match[0];
}
