import { useQuery } from "@tanstack/react-query";
import type { JSX } from "react";
import type { ServiceEvent } from "../../api/types.ts";
import { TriggerBadge } from "../../parts/badge.tsx";
import { LinkButton } from "../../parts/button.tsx";
import { JsonView } from "../../parts/code.tsx";
import { Card, Facts, Page } from "../../parts/page.tsx";
import { Empty, QueryView } from "../../parts/state.tsx";
import { Time } from "../../parts/time.tsx";
import { deliveryColumns, eventColumn, receiverColumn } from "../deliveries/delivery-columns.tsx";
import { NewestDeliveries } from "../deliveries/newest-deliveries.tsx";
import { recordPath } from "../resources/record-key.ts";

/** Columns of the deliveries of one event, with the receiver first. */
const columns = [
  receiverColumn,
  ...deliveryColumns.filter((one) => one !== eventColumn && one !== receiverColumn),
];

/** Shows one event: the record at that time, and the webhooks that got it. */
export function EventPage({ uuid }: { readonly uuid: string }): JSX.Element {
  const query = useQuery<ServiceEvent>({ queryKey: ["/events", `/${encodeURIComponent(uuid)}`] });
  const event = query.data;
  return (
    <Page
      title={event === undefined ? "Event" : `${event.resource} ${event.record_id}`}
      crumbs={[{ title: "Events", href: "/events" }]}
      status={event && <TriggerBadge trigger={event.event} />}
    >
      <QueryView query={query}>
        {(current) => (
          <>
            <Summary event={current} />
            <NewestDeliveries
              title="Deliveries"
              filter={`event_id=${current.id}`}
              most={50}
              columns={columns}
              empty={
                <Empty icon="deliveries" title="There is no delivery of it that you may see">
                  It matched no webhook of yours, or its deliveries are no longer kept.
                </Empty>
              }
            />
          </>
        )}
      </QueryView>
    </Page>
  );
}

function Summary({ event }: { readonly event: ServiceEvent }): JSX.Element {
  const { resource, record_id: record, uuid, id } = event;
  return (
    <Card
      title="The record as it was"
      actions={
        <>
          <LinkButton href={recordPath(resource, record)} icon="resources">
            As it is now
          </LinkButton>
          <LinkButton
            href={`/events?resource=${encodeURIComponent(resource)}&record_id=${encodeURIComponent(record)}`}
            icon="events"
          >
            All its events
          </LinkButton>
        </>
      }
    >
      <div className="stack">
        <Facts
          facts={{
            Happened: <Time value={event.occurred_at} isExact />,
            Number: id,
            UUID: <code>{uuid}</code>,
          }}
        />
        {event.data === null ? (
          <p className="muted">{event.problem ?? "There is no data."}</p>
        ) : (
          <JsonView label="The record" value={event.data} />
        )}
      </div>
    </Card>
  );
}
