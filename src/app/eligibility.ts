import { createSql, type Sql } from "../db/sql.ts";
import { createTurns } from "../kit/turns.ts";
import type { Definitions } from "../mapping/definition.ts";
import { createAccessConditions } from "../resources/access.ts";
import { createEligibility, type Eligibility } from "../subscriptions/eligibility.ts";
import { judgeLimitMs } from "../subscriptions/judge-in-time.ts";
import type { Storage } from "./storage.ts";
import { typesOf } from "./statement-names.ts";

/**
 * Limit for the locks of the tables that decide who may read a record. The sweep judges the
 * deliveries of all resources together.
 */
const lockLimitMs = 1_000;

/** @param atOnce Most statements at a time. Default: as many as there are connections. */
export function createEligibilityOf(
  { database, isEmbedded, log }: Pick<Storage, "database" | "isEmbedded" | "log">,
  definitions: Definitions,
  { atOnce = Infinity }: { readonly atOnce?: number } = {},
): Eligibility {
  const turns = createTurns<"all">(atOnce);
  const inTurn =
    (sql: Sql): Sql =>
    (text, values) =>
      turns.run("all", () => sql(text, values));
  const access = createAccessConditions(definitions);
  // When most rows are of one team, the planner expects as many of each, and reads the whole table.
  const settings = { lockLimitMs, isByIndex: true };
  const shared = { pool: database.pool, isEmbedded, salt: typesOf(definitions), ...settings };
  const sql = inTurn(createSql(shared));
  const quickSql = inTurn(createSql({ ...shared, timeLimitMs: judgeLimitMs }));
  return createEligibility({ definitions, access, sql, quickSql, log });
}
