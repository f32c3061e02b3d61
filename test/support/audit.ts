import { expect } from "chai";
import { Client } from "pg";
import type { AuditRow } from "../../src/operations/audit-list.ts";
import type { Sql } from "../../src/db/sql.ts";
import type { Canaries } from "./canaries.ts";
import { admin } from "./program.ts";

/** A row of `svc.audit`. */
export type AuditEntry = Omit<AuditRow, "details"> & {
  // oxlint-disable-next-line typescript/no-explicit-any -- Tests look into details of many shapes; chai checks them.
  readonly details: any;
};

/** Returns the rows that an action adds to the audit trail, oldest first. */
export async function auditOf(sql: Sql, act: () => Promise<unknown>): Promise<readonly AuditEntry[]> {
  const [before] = await sql<{ last: string }>("SELECT coalesce(max(id), 0) AS last FROM svc.audit");
  await act();
  return sql("SELECT * FROM svc.audit WHERE id > $1 ORDER BY id", [before?.last]);
}

/**
 * Searches the whole table for the canaries of a journey with webhooks. With an `env`, also
 * searches the output of `svc-admin audit list`.
 *
 * @returns The rows.
 */
export async function keepAudit({
  canaries,
  url,
  env,
}: {
  readonly canaries: Canaries;
  readonly url: string;
  readonly env?: Readonly<Record<string, string>>;
}): Promise<string> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query("SELECT entry::text FROM svc.audit AS entry");
    const text = JSON.stringify(rows);
    for (const action of ["webhook.created", "token.created"]) expect(text).to.include(action);
    canaries.keep("svc.audit", text);
    if (env !== undefined) {
      const printed = await admin(["audit", "list", "--limit", "10000"], env);
      canaries.keep("svc-admin audit list", JSON.stringify(printed));
    }
    return text;
  } finally {
    await client.end();
  }
}
