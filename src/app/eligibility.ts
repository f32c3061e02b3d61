import { createSql } from "../db/sql.ts";
import type { Definitions } from "../mapping/definition.ts";
import { createAccessConditions } from "../resources/access.ts";
import { createEligibility, type Eligibility } from "../subscriptions/eligibility.ts";
import type { Storage } from "./storage.ts";
import { typesOf } from "./statement-names.ts";

/** @param limits Limit for the locks of the tables that decide who may read a record. */
export function createEligibilityOf(
  { database, isEmbedded, log }: Pick<Storage, "database" | "isEmbedded" | "log">,
  definitions: Definitions,
  limits: { readonly lockLimitMs?: number } = {},
): Eligibility {
  const access = createAccessConditions(definitions);
  const sql = createSql({ pool: database.pool, isEmbedded, salt: typesOf(definitions), ...limits });
  return createEligibility({ definitions, access, sql, log });
}
