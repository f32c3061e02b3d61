import type { JSX } from "react";
import { Link } from "wouter";
import type { ReceiverState, Stats } from "../../api/types.ts";
import { StatusBadge } from "../../parts/badge.tsx";
import { DataTable, type Column } from "../../parts/data-table.tsx";
import { Icon } from "../../parts/icon.tsx";
import { Card } from "../../parts/page.tsx";
import { Time } from "../../parts/time.tsx";

/** Sentences on why a receiver gets no deliveries, by the API's reason. */
const reasons: Readonly<Record<string, string>> = {
  owner: "Paused by its owner.",
  gone: "It answered 410: it is gone.",
  failing: "Switched off after nothing but failures.",
  user: "Its user is disabled.",
  rate_limit: "More comes than its rate limit lets through.",
  no_slot: "All of its slots are taken.",
};

const columns: readonly Column<ReceiverState>[] = [
  { title: "Receiver", render: ({ receiver, webhook_id }) => receiver ?? `Webhook ${webhook_id}` },
  { title: "State", render: ({ state }) => <StatusBadge status={state} /> },
  { title: "Since", render: ({ since }) => <Time value={since} /> },
  { title: "Why", render: ({ reason }) => reasonOf(reason) },
  {
    title: "Waiting",
    isNumeric: true,
    render: ({ waiting }) => (waiting === null ? "–" : `${waiting}${waiting >= 100 ? "+" : ""}`),
  },
  { title: "Resource", render: ({ resource }) => (resource === "*" ? "all" : resource) },
];

const ofAll: Column<ReceiverState> = {
  title: "User",
  isNumeric: true,
  render: ({ user_id: id }) => <Link href={`/admin/users/${id}`}>{id}</Link>,
};

/** Lists receivers that fail, wait or are off, the worst first. */
export function Receivers({
  receivers,
  of,
}: {
  readonly receivers: readonly ReceiverState[];
  readonly of: Stats["of"];
}): JSX.Element {
  return (
    <Card
      title="Receivers that need attention"
      note="Webhooks whose receiver fails, makes deliveries wait, or is off"
      isFlush
    >
      {receivers.length === 0 ? (
        <p className="all-taken row muted">
          <Icon name="check" /> Every receiver takes what it is sent.
        </p>
      ) : (
        <DataTable
          label="Receivers that need attention"
          columns={of === "all" ? [...columns, ofAll] : columns}
          rows={receivers}
          rowKey={({ webhook_id }) => webhook_id}
          rowHref={({ webhook_id }) => `/webhooks/${webhook_id}`}
        />
      )}
    </Card>
  );
}

/** Returns a reason as a sentence. The last error of a failing receiver already is a sentence. */
function reasonOf(reason: string | null): string {
  return reason === null ? "No reason is known." : (reasons[reason] ?? reason);
}
