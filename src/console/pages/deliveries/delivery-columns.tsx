import type { JSX } from "react";
import type { Delivery } from "../../api/types.ts";
import { StatusBadge, TriggerBadge } from "../../parts/badge.tsx";
import type { Column } from "../../parts/data-table.tsx";
import { Time } from "../../parts/time.tsx";

export const eventColumn: Column<Pick<Delivery, "resource" | "record_id" | "event">> = {
  title: "Event",
  render: ({ resource, record_id: record, event }) => (
    <span className="row">
      <TriggerBadge trigger={event} />
      <span>
        {resource} {record}
      </span>
    </span>
  ),
};

export const receiverColumn: Column<Pick<Delivery, "url">> = {
  title: "Receiver",
  render: ({ url }) => <span title={url}>{url}</span>,
};

/** The columns of every table of deliveries. */
export const deliveryColumns: readonly Column<Delivery>[] = [
  eventColumn,
  { title: "Status", render: ({ status }) => <StatusBadge status={status} /> },
  {
    title: "Attempts",
    isNumeric: true,
    render: ({ attempt, max_attempts: most }) => `${attempt} of ${most}`,
  },
  { title: "Next attempt or last error", render: (delivery) => <Outlook delivery={delivery} /> },
  receiverColumn,
  { title: "Created", render: ({ created_at: time }) => <Time value={time} /> },
];

function Outlook({ delivery }: { readonly delivery: Delivery }): JSX.Element {
  const { status, next_attempt_at: next, last_error: error } = delivery;
  if (status === "delivered") return <span className="muted">arrived</span>;
  if (status === "retrying" && next !== null)
    return (
      <span title={error ?? undefined}>
        due <Time value={next} />
        {error !== null && <span className="muted">: {error}</span>}
      </span>
    );
  if (error !== null) return <span title={error}>{error}</span>;
  return <span className="muted">{status === "held" ? "waits for its webhook" : "on its way"}</span>;
}
