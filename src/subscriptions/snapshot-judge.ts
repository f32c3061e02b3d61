import type { Sql } from "../db/sql.ts";
import type { Caller } from "../kit/caller.ts";
import type { Definition } from "../mapping/definition.ts";
import { conditionText, createParameters } from "../querying/condition-text.ts";
import type { Condition } from "../querying/condition.ts";
import { bindToUsers } from "../querying/user-values.ts";
import { snapshotRow, type SnapshotColumn } from "./snapshot-row-sql.ts";

/** A user and an event that the user may be able to read. */
export interface JudgedPair {
  readonly event: {
    /** Row id, as a decimal string. */
    readonly id: string;
  };
  readonly user: Pick<Caller, "id" | "email">;
}

/** Returns the key of a pair in the answers of `judgeSnapshots`. */
export function pairKey(eventId: string, userId: number): string {
  return `${eventId} ${userId}`;
}

/**
 * Applies the rule `access.read` to the snapshots of events as if they were rows, in one statement
 * for all pairs. The rule therefore also applies to deleted records, with the related rows as they
 * are now. No pair passes for an erased event, or without the old row that `which` requires. A rule
 * such as "not private" would otherwise hold for a row of nulls.
 *
 * @returns The keys of the pairs that pass.
 */
export async function judgeSnapshots(
  sql: Sql,
  definition: Definition,
  filter: Condition,
  pairs: readonly JudgedPair[],
  which: SnapshotColumn,
): Promise<ReadonlySet<string>> {
  const parameters = createParameters();
  const events = `${parameters.add(pairs.map(({ event }) => event.id))}::bigint[]`;
  const given = [
    events,
    `${parameters.add(pairs.map(({ user }) => String(user.id)))}::int[]`,
    `${parameters.add(pairs.map(({ user }) => user.email))}::text[]`,
  ].join(", ");
  const condition = bindToUsers(filter);
  // With few events, PostgreSQL may join the pairs last. It then converts the snapshots of all
  // events that it reads, and those of other resources may not fit.
  const text = `SELECT u.event_id AS "eventId", u.id AS "userId"
    FROM unnest(${given}) AS u (event_id, id, email)
    JOIN svc.events AS e ON e.id = u.event_id
    CROSS JOIN LATERAL ${snapshotRow(definition, [condition], which)}
    WHERE e.id = ANY(${events}) AND e.${which} <> 'null' AND (${conditionText(condition, "t", parameters)})`;
  const rows = await sql<{ readonly eventId: string; readonly userId: number }>(text, parameters.values);
  return new Set(rows.map(({ eventId, userId }) => pairKey(eventId, userId)));
}
