import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useState, type JSX } from "react";
import type { CursorPage, ServiceEvent } from "../../api/types.ts";
import { useNamesWithEvents } from "../../api/use-resources.ts";
import { StatusBadge } from "../../parts/badge.tsx";
import { Button } from "../../parts/button.tsx";
import { shortened } from "../../parts/code.tsx";
import { DataTable, goToListHead, type Column } from "../../parts/data-table.tsx";
import { optionsOf } from "../../parts/field.tsx";
import { FilterBar, SelectFilter, TextFilter } from "../../parts/filters.tsx";
import { NoRows } from "../../parts/list-table.tsx";
import { Card, Page } from "../../parts/page.tsx";
import { Empty, ErrorLine, QueryView } from "../../parts/state.tsx";
import { Time } from "../../parts/time.tsx";
import { useUrlState } from "../../parts/url-state.ts";
import { eventColumn } from "../deliveries/delivery-columns.tsx";
import { eventOptions } from "../deliveries/delivery-list.tsx";
import { mostShown, useEventStream, type StreamState } from "./use-event-stream.ts";

const filters = ["resource", "event", "record_id"];

const columns: readonly Column<ServiceEvent>[] = [
  eventColumn,
  { title: "When", render: ({ occurred_at: time }) => <Time value={time} /> },
  {
    title: "Record",
    render: ({ data, problem }) =>
      data === null ? (
        <span className="muted">{problem ?? "no data"}</span>
      ) : (
        <code>{shortened(JSON.stringify(data))}</code>
      ),
  },
];

/** Lists events, the newest first, and adds new events live. */
export function EventListPage(): JSX.Element {
  const url = useUrlState();
  const [isLive, setLive] = useState(true);
  const before = url.search.get("before") ?? "";
  const filter = filterOf(url.search);
  const query = useQuery<CursorPage<ServiceEvent>>({
    queryKey: ["/events", `?${filter}&per_page=50&before=${encodeURIComponent(before)}`],
    placeholderData: keepPreviousData,
    // New events arrive by the stream; a refetch would restart the stream.
    staleTime: Number.POSITIVE_INFINITY,
    refetchOnMount: "always",
  });
  const isFirst = before === "";
  const after = query.isPlaceholderData || query.data === undefined ? null : endOf(query.data);
  const stream = useEventStream({ isOn: isLive && isFirst, query: filter, after });
  const state = states[stream.state];
  return (
    <Page
      title="Events"
      status={<span role="status">{state !== null && <StatusBadge status={state} />}</span>}
      actions={
        isFirst ? (
          <Button
            icon={isLive ? "pause" : "play"}
            onPress={() => {
              if (!isLive) void query.refetch();
              setLive(!isLive);
            }}
          >
            {isLive ? "Pause" : "Go live"}
          </Button>
        ) : (
          <Button icon="up" onPress={() => url.change({ before: null })}>
            To the newest
          </Button>
        )
      }
    >
      <Card isFlush>
        <FilterBar>
          <SelectFilter label="Resource" name="resource" options={optionsOf(useNamesWithEvents())} />
          <SelectFilter label="Event" name="event" options={eventOptions} />
          <TextFilter label="Record" name="record_id" placeholder="its id" />
        </FilterBar>
        {stream.state === "refused" && <ErrorLine error={stream.error} />}
        <QueryView query={query}>
          {(page) => (
            <Listed page={page} live={isFirst ? stream.events : []} isStale={query.isPlaceholderData} />
          )}
        </QueryView>
      </Card>
    </Page>
  );
}

/**
 * Returns the id of the event after which the stream begins: the newest shown event. Without one,
 * it is the last event that was scanned. From the first event on, a stream would read all events.
 */
function endOf({ data, next_cursor: looked }: CursorPage<ServiceEvent>): number {
  return data[0]?.id ?? Number(looked ?? 0);
}

function Listed({
  page,
  live,
  isStale,
}: {
  readonly page: CursorPage<ServiceEvent>;
  readonly live: readonly ServiceEvent[];
  readonly isStale: boolean;
}): JSX.Element {
  const url = useUrlState();
  const all = [...live, ...page.data];
  const rows = all.slice(0, mostShown);
  // The events that are no longer shown are on the next page.
  const older = all.length > mostShown ? String(rows.at(-1)?.id) : page.next_cursor;
  if (rows.length === 0 && page.next_cursor === null)
    return (
      <NoRows
        empty={
          <Empty icon="events" title="Nothing has happened yet">
            Change a record of a resource with triggers, and its event appears here by itself.
          </Empty>
        }
      />
    );
  return (
    <>
      <DataTable
        label="Events"
        columns={columns}
        rows={rows}
        rowKey={({ uuid }) => uuid}
        rowHref={({ uuid }) => `/events/${uuid}`}
        isStale={isStale}
      />
      <nav className="row pager" aria-label="Pages">
        <span className="small muted" role="status">
          {rows.length} {rows.length === 1 ? "event" : "events"}
          {live.length > 0 && `, ${Math.min(live.length, mostShown)} of them since you came`}
        </span>
        <Button
          icon="down"
          isDisabled={older === null}
          onPress={({ target }) => {
            url.change({ before: older });
            goToListHead(target);
          }}
        >
          Older
        </Button>
      </nav>
    </>
  );
}

/** Words of `StatusBadge`. */
const states: Readonly<Record<StreamState, string | null>> = {
  off: null,
  connecting: "connecting",
  live: "live",
  away: "connecting again",
  refused: "not live",
};

function filterOf(search: URLSearchParams): string {
  return new URLSearchParams([...search].filter(([name]) => filters.includes(name))).toString();
}
