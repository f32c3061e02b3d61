import type { OutputRow } from "../kit/cli-output.ts";
import { counted } from "../kit/counted.ts";
import { formatDateTime } from "../kit/date-time.ts";
import type { Sql } from "../db/sql.ts";

/** Filter of rows of `svc.audit`. Every given condition must hold. */
export interface AuditFilter {
  readonly since?: Date | undefined;
  readonly until?: Date | undefined;
  /** An action, or the part before its dot. */
  readonly action?: string | undefined;
  readonly actor?: Party | undefined;
  readonly subject?: Party | undefined;
}

/** All actors or subjects of a kind, or one of them. */
export interface Party {
  readonly kind: string;
  /** Id or name of an actor; id of a subject. */
  readonly id?: string | undefined;
}

/** Parses `user` or `user:7`. The id may be empty, and may contain colons. */
export function readParty(text: string): Party {
  const [kind = "", ...id] = text.split(":");
  return id.length === 0 ? { kind } : { kind, id: id.join(":") };
}

/** A stored row, without the details that only the next configuration needs. */
export interface AuditRow {
  readonly id: string;
  readonly occurred_at: Date;
  readonly action: string;
  readonly actor_kind: string;
  readonly actor_id: number | null;
  readonly actor_name: string | null;
  readonly token_id: number | null;
  readonly source: string | null;
  readonly request_id: string | null;
  readonly subject_kind: string;
  readonly subject_id: string | null;
  readonly details: Readonly<Record<string, unknown>>;
}

/** Rows of a page: few enough that no statement reaches the time limit or fills the memory. */
const pageSize = 500;

/** Returns the rows that match, newest first. */
export async function listAudit(sql: Sql, filter: AuditFilter, limit: number): Promise<readonly AuditRow[]> {
  const rows: AuditRow[] = [];
  for (;;) {
    const last = rows.at(-1);
    const position = last && { occurredAt: last.occurred_at.toISOString(), id: last.id, isBackwards: false };
    const page = await readAudit(sql, { filter, position, take: Math.min(pageSize, limit - rows.length) });
    rows.push(...page);
    if (page.length < pageSize || rows.length >= limit) return rows;
  }
}

/** A position in the list, which is ordered by time and id. */
interface AuditPosition {
  readonly occurredAt: string;
  readonly id: string;
  /** Whether to read the newer rows, which come before the position. */
  readonly isBackwards: boolean;
}

interface AuditPage {
  readonly filter: AuditFilter;
  readonly position: AuditPosition | undefined;
  readonly take: number;
}

/**
 * Reads rows from a position on, newest first; backwards the oldest first. The statement has only
 * the given conditions, so that the planner sees them.
 */
export async function readAudit(
  sql: Sql,
  { filter: { since, until, action, actor, subject }, position, take }: AuditPage,
): Promise<readonly AuditRow[]> {
  const [comparison, direction] = position?.isBackwards === true ? [">", "ASC"] : ["<", "DESC"];
  const values: unknown[] = [];
  const place = (value: unknown): string => `$${values.push(value)}`;
  const conditions = [
    ...(since === undefined ? [] : [`occurred_at >= ${place(since)}`]),
    ...(until === undefined ? [] : [`occurred_at < ${place(until)}`]),
    ...(action === undefined ? [] : [actionText(place(action))]),
    ...(actor === undefined ? [] : [`actor_kind = ${place(actor.kind)}`]),
    ...(actor?.id === undefined ? [] : [`${place(actor.id)} IN (actor_id::text, actor_name)`]),
    ...(subject === undefined ? [] : [`subject_kind = ${place(subject.kind)}`]),
    ...(subject?.id === undefined ? [] : [`subject_id = ${place(subject.id)}`]),
    ...(position === undefined
      ? []
      : [`(occurred_at, id) ${comparison} (${place(position.occurredAt)}, ${place(position.id)})`]),
  ];
  const text = `
    SELECT id, occurred_at, action, actor_kind, actor_id, actor_name, token_id, source, request_id, subject_kind, subject_id,
      details - 'hidden' AS details
    FROM svc.audit
    ${conditions.length === 0 ? "" : `WHERE ${conditions.join(" AND ")}`}
    ORDER BY occurred_at ${direction}, id ${direction}
    LIMIT ${place(take)}`;
  return sql<AuditRow>(text, values);
}

/** Selects by the kind, which has an index, and by the action if the text is one. */
function actionText(text: string): string {
  const kind = "split_part(action, '.', 1)";
  return `(${kind} = split_part(${text}, '.', 1) AND ${text} IN (action, ${kind}))`;
}

/** Presents the whole row, for machines. */
export function presentAudit({ id, occurred_at: at, ...row }: AuditRow): OutputRow {
  return { id: Number(id), occurred_at: formatDateTime(at), ...row };
}

/** Presents the time, the action, the object and the actor, for people. */
export function summaryOf(row: AuditRow): OutputRow {
  const changed = changedNames(row);
  return {
    occurred_at: `${row.occurred_at.toISOString().slice(0, 19)}Z`,
    action: row.action,
    subject: `${partyText(row.subject_kind, row.subject_id)}${changed === "" ? "" : `: ${changed}`}`,
    by: [
      partyText(row.actor_kind, row.actor_id ?? row.actor_name),
      ...(row.token_id === null ? [] : [`token ${row.token_id}`]),
      ...(row.source === null ? [] : [`from ${row.source}`]),
    ].join(", "),
  };
}

function partyText(kind: string, id: string | number | null): string {
  return id === null ? kind : `${kind} ${id}`;
}

const longestSummary = 200;

/** Details that are counts, with the name of one. */
const counts = { secrets: "secret", steps: "step", faults: "fault", processes: "process" } as const;

/** Returns names of columns, settings and resources, or a count; `--json` has the values. */
function changedNames({ details }: AuditRow): string {
  for (const [many, one] of Object.entries(counts)) {
    const count = details[many];
    if (typeof count === "number") return counted(count, one, many);
  }
  const { before, after, resources, settings } = details;
  // For a created or deleted object, this would be every column.
  const columns = before === undefined ? [] : Object.keys(after ?? {});
  const names = Array.isArray(settings) ? [...Object.values(resources ?? {}).flat(), ...settings] : columns;
  const text = names.map(String).join(", ");
  return text.length > longestSummary ? `${text.slice(0, longestSummary)}…` : text;
}
