import type { QueryResultRow } from "pg";
import type { Prisma } from "./generated/client.ts";
import type { Sql } from "./sql.ts";

/** Runs statements in a transaction of the client. */
export function sqlOverPrisma(tx: Pick<Prisma.TransactionClient, "$queryRawUnsafe">): Sql {
  // The text is a constant of ours, and values are bound.
  return <R extends QueryResultRow>(text: string, values: readonly unknown[] = []) =>
    tx.$queryRawUnsafe<R[]>(text, ...values);
}
