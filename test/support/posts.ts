import type { Pool } from "pg";
import { createStatementNames } from "../../src/db/statement-name.ts";
import { createInTransaction, type InTransaction } from "../../src/db/transaction.ts";
import { createAnswerPost, type AnswerPost, type Seal } from "../../src/http/idempotency.ts";

/** Creates the dependencies of routes with a POST, over a real PostgreSQL. */
export function createPosts(
  pool: Pool,
  seal: Seal,
): { readonly inTransaction: InTransaction; readonly answerPost: AnswerPost } {
  const inTransaction = createInTransaction(pool, createStatementNames(false));
  return { inTransaction, answerPost: createAnswerPost(seal, inTransaction) };
}
