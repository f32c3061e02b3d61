import type { Sql } from "../../src/db/sql.ts";
import type { Definitions } from "../../src/mapping/definition.ts";
import { createAccessConditions } from "../../src/resources/access.ts";
import { createEligibility, type Eligibility } from "../../src/subscriptions/eligibility.ts";
import { createLog, type Log } from "../../src/telemetry/log.ts";

const noDatabase: Sql = () => Promise.reject(new Error("owners and admins are no question to the database"));

/** Returns the eligibility of the resources. Without `sql`, no resource may have a filter. */
export function eligibilityOf(
  definitions: Definitions,
  {
    sql = noDatabase,
    quickSql = sql,
    log = createLog({ level: "silent" }),
  }: { readonly sql?: Sql; readonly quickSql?: Sql; readonly log?: Log } = {},
): Eligibility {
  const access = createAccessConditions(definitions);
  return createEligibility({ definitions, access, sql, quickSql, log });
}
