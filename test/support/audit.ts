import type { Sql } from "../../src/db/sql.ts";

/** A row of `svc.audit`. */
export interface AuditEntry {
  readonly id: string;
  readonly action: string;
  readonly actor_kind: string;
  readonly actor_id: number | null;
  readonly actor_name: string | null;
  readonly token_id: number | null;
  readonly source: string | null;
  readonly request_id: string | null;
  readonly subject_kind: string;
  readonly subject_id: string | null;
  // oxlint-disable-next-line typescript/no-explicit-any -- Tests look into details of many shapes; chai checks them.
  readonly details: any;
}

/** What an act leaves in the audit trail, oldest first. */
export async function auditOf(sql: Sql, act: () => Promise<unknown>): Promise<readonly AuditEntry[]> {
  const [before] = await sql<{ last: string }>("SELECT coalesce(max(id), 0) AS last FROM svc.audit");
  await act();
  return sql("SELECT * FROM svc.audit WHERE id > $1 ORDER BY id", [before?.last]);
}
