import { actorKinds, auditActionNames, subjectKinds } from "../db/audit.ts";
import type { Sql } from "../db/sql.ts";
import type { CursorEnvelope } from "../http/page.ts";
import { durationMsOf } from "../kit/duration.ts";
import { answerByCursor, cursorPage } from "../querying/cursor-page.ts";
import type { Cursors } from "../querying/cursor.ts";
import { fixedShape } from "../querying/fixed-shape.ts";
import type { ListParameters } from "../querying/list-parameters.ts";
import { parseAskedDate } from "../validation/dates.ts";
import { presentAudit, readAudit, readParty, type AuditFilter } from "./audit-list.ts";

/** Longest id or name in a filter. */
const longestId = 200;

/** Parameters of the list of the audit trail. */
export const auditShape = fixedShape([], {
  hasGroups: false,
  counts: ["none"],
  own: {
    since: (text) => timeFault("since", text),
    until: (text) => timeFault("until", text),
    action: (text) =>
      auditActionNames.includes(text)
        ? undefined
        : `The action field must be one of ${auditActionNames.join(", ")}.`,
    actor: (text) => partyFault("actor", text, actorKinds),
    subject: (text) => partyFault("subject", text, subjectKinds),
  },
});

function timeFault(name: string, text: string): string | undefined {
  return timeOf(text)
    ? undefined
    : `The ${name} field must be a date, such as 2026-03-28T14:30:00Z, or a duration, such as 24h.`;
}

/** Parses a time. A duration means that long ago, as for `svc-admin audit list`. */
function timeOf(text: string): Date | undefined {
  const ago = durationMsOf(text);
  return ago === undefined ? parseAskedDate(text) : new Date(Date.now() - ago);
}

function partyFault(name: string, text: string, kinds: readonly string[]): string | undefined {
  const { kind, id } = readParty(text);
  const isFine = kinds.includes(kind) && id !== "" && (id?.length ?? 0) <= longestId && !text.includes("\0");
  return isFine
    ? undefined
    : `The ${name} field must be one of ${kinds.join(", ")}, or one with an id: ${kinds[0]}:7.`;
}

function filterOf({ given }: Pick<ListParameters, "given">): AuditFilter {
  const [since, until] = ["since", "until"].map((name) => timeOf(given.get(name) ?? ""));
  const [actor, subject] = ["actor", "subject"].map((name) => given.get(name));
  return {
    since,
    until,
    action: given.get("action"),
    actor: actor === undefined ? undefined : readParty(actor),
    subject: subject === undefined ? undefined : readParty(subject),
  };
}

/** Reads a page of the audit trail, the newest first. */
export async function readAuditPage(
  parameters: ListParameters,
  {
    sql,
    ...request
  }: { readonly sql: Sql; readonly cursors: Cursors; readonly userId: number; readonly url: URL },
): Promise<CursorEnvelope<unknown>> {
  return answerByCursor({ list: "audit", parameters, ...request }, async (position, take) => {
    const [occurredAt = "", id = ""] = position?.values.map(String) ?? [];
    const read = await readAudit(sql, {
      filter: filterOf(parameters),
      position: position && { occurredAt, id, isBackwards: position.isBackwards },
      take: take + 1,
    });
    const page = cursorPage(read, {
      position,
      take,
      valuesOf: (row) => [row.occurred_at.toISOString(), row.id],
    });
    return { ...page, rows: page.rows.map(presentAudit) };
  });
}
