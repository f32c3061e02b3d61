import { useQuery } from "@tanstack/react-query";
import type { JSX } from "react";
import { Link } from "wouter";
import { api } from "../../api/client.ts";
import { every } from "../../api/every.ts";
import type { CursorPage, Delivery, ServiceEvent } from "../../api/types.ts";
import { TriggerBadge } from "../../parts/badge.tsx";
import { LinkButton } from "../../parts/button.tsx";
import { JsonView } from "../../parts/code.tsx";
import { DataTable, type Column } from "../../parts/data-table.tsx";
import { Card, Facts, Page } from "../../parts/page.tsx";
import { Empty, QueryView } from "../../parts/state.tsx";
import { Time } from "../../parts/time.tsx";
import { deliveryColumns, eventColumn } from "../deliveries/delivery-columns.tsx";

/** Shows one event: the record at that time, and the webhooks that got it. */
export function EventPage({ uuid }: { readonly uuid: string }): JSX.Element {
  const query = useQuery({
    queryKey: ["/events", "one", uuid],
    queryFn: ({ signal }) => api<ServiceEvent>(`/events/${encodeURIComponent(uuid)}`, { signal }),
  });
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
            <Deliveries event={current} />
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
          <LinkButton
            href={`/resources/${encodeURIComponent(resource)}/${encodeURIComponent(record)}`}
            icon="resources"
          >
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
          facts={[
            ["Happened", <Time key="time" value={event.occurred_at} isExact />],
            ["Number", id],
            ["UUID", <code key="uuid">{uuid}</code>],
            [
              "Record",
              <Link
                key="record"
                href={`/resources/${encodeURIComponent(resource)}/${encodeURIComponent(record)}`}
              >{`${resource} ${record}`}</Link>,
            ],
          ]}
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

function Deliveries({ event: { id } }: { readonly event: ServiceEvent }): JSX.Element {
  const query = useQuery({
    queryKey: ["/webhook-deliveries", "of", id],
    refetchInterval: every(5_000),
    queryFn: ({ signal }) =>
      api<CursorPage<Delivery>>(`/webhook-deliveries?event_id=${id}&cursor=&per_page=50`, { signal }),
  });
  return (
    <Card title="Who got it" isFlush>
      <QueryView query={query} lines={3}>
        {({ data, next_cursor: older }) =>
          data.length === 0 ? (
            <Empty icon="deliveries" title="There is no delivery of it that you may see">
              It matched no webhook of yours, or its deliveries are no longer kept.
            </Empty>
          ) : (
            <>
              <DataTable
                label="Who got it"
                columns={deliveryColumns.filter((one) => one !== eventColumn).toSorted(receiverFirst)}
                rows={data}
                rowKey={(delivery) => delivery.id}
                rowHref={(delivery) => `/deliveries/${delivery.id}`}
              />
              {older !== null && (
                <p className="pager small muted">
                  <span>Only the newest {data.length} are shown.</span>
                  <Link href={`/deliveries?event_id=${id}`}>All deliveries of the event</Link>
                </p>
              )}
            </>
          )
        }
      </QueryView>
    </Card>
  );
}

function receiverFirst(one: Column<Delivery>, other: Column<Delivery>): number {
  return Number(other.title === "Receiver") - Number(one.title === "Receiver");
}
