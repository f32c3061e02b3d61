import { useQuery } from "@tanstack/react-query";
import type { JSX } from "react";
import { Link } from "wouter";
import { isStatus } from "../../api/api-error.ts";
import { api } from "../../api/client.ts";
import { every } from "../../api/every.ts";
import type { CursorPage, Delivery, JsonRecord, ServiceEvent } from "../../api/types.ts";
import { StatusBadge, TriggerBadge } from "../../parts/badge.tsx";
import { Value } from "../../parts/code.tsx";
import { Card } from "../../parts/page.tsx";
import { Empty, QueryView } from "../../parts/state.tsx";
import { Time } from "../../parts/time.tsx";
import { receiverOf } from "../webhooks/health.ts";
import { isSame } from "./conflict.tsx";
import "../../parts/time-line.css";

const pageSize = "100";
const refetchMilliseconds = 5_000;

interface Story {
  readonly events: readonly ServiceEvent[];
  /** Whether older events exist that are not shown. */
  readonly isCut: boolean;
  /** Null for a token that may not see deliveries. */
  readonly deliveries: readonly Delivery[] | null;
  /** Time before which deliveries may be missing; null when all are shown. */
  readonly deliveriesSince: string | null;
}

/** Shows the events of a record, the newest first, and their deliveries. */
export function RecordStory({
  resource,
  id,
}: {
  readonly resource: string;
  readonly id: string;
}): JSX.Element {
  const query = useQuery({
    queryKey: ["story", resource, id],
    queryFn: ({ signal }) => readStory(resource, id, signal),
    refetchInterval: every(refetchMilliseconds),
  });
  return (
    <Card title="What happened" note="Each change of this record, and who was notified">
      <QueryView query={query}>
        {(story) =>
          story.events.length === 0 ? (
            <Empty icon="events" title="No event is kept of this record">
              Its resource has no events, or they are older than what is kept.
            </Empty>
          ) : (
            <>
              {story.deliveries === null && (
                <p className="small muted">
                  Your token lacks the scope <code>webhooks</code>, so deliveries are not shown.
                </p>
              )}
              {story.isCut && (
                <p className="small muted">Only the last {story.events.length} events are shown.</p>
              )}
              <ol className="time-line">
                {story.events.map((event, index) => (
                  <Chapter
                    key={event.uuid}
                    event={event}
                    before={story.events[index + 1]}
                    deliveries={story.deliveries}
                    isCut={isBefore(event.occurred_at, story.deliveriesSince)}
                  />
                ))}
              </ol>
            </>
          )
        }
      </QueryView>
    </Card>
  );
}

async function readStory(resource: string, id: string, signal: AbortSignal): Promise<Story> {
  const query = new URLSearchParams({ resource, record_id: id, before: "", per_page: pageSize });
  const [{ data, next_cursor: older }, deliveries] = await Promise.all([
    api<CursorPage<ServiceEvent>>(`/events?${query}`, { signal }),
    readDeliveries(resource, id, signal),
  ]);
  // The newest come first.
  const oldest = deliveries?.data.at(-1)?.created_at ?? null;
  return {
    events: data,
    isCut: older !== null,
    deliveries: deliveries?.data ?? null,
    deliveriesSince: deliveries === null || deliveries.next_cursor === null ? null : oldest,
  };
}

async function readDeliveries(
  resource: string,
  id: string,
  signal: AbortSignal,
): Promise<CursorPage<Delivery> | null> {
  try {
    const query = new URLSearchParams({ resource, record_id: id, cursor: "", per_page: pageSize });
    return await api<CursorPage<Delivery>>(`/webhook-deliveries?${query}`, { signal });
  } catch (error) {
    if (isStatus(error, 403)) return null;
    throw error;
  }
}

function isBefore(time: string, since: string | null): boolean {
  return since !== null && new Date(time) <= new Date(since);
}

function Chapter({
  event,
  before,
  deliveries,
  isCut,
}: {
  readonly event: ServiceEvent;
  readonly before: ServiceEvent | undefined;
  readonly deliveries: readonly Delivery[] | null;
  /** Whether the event may have more deliveries than these. */
  readonly isCut: boolean;
}): JSX.Element {
  const own = deliveries?.filter((delivery) => delivery.event_uuid === event.uuid);
  return (
    <li>
      <div className="row">
        <TriggerBadge trigger={event.event} />
        <Link href={`/events/${event.uuid}`} className="small">
          <Time value={event.occurred_at} />
        </Link>
      </div>
      {event.event === "on_update" && <Changes before={before?.data ?? null} after={event.data} />}
      {event.problem !== undefined && <p className="small muted">{event.problem}</p>}
      {own !== undefined && (
        <div className="stack tellings">
          {own.map((delivery) => (
            <Link key={delivery.id} href={`/deliveries/${delivery.id}`}>
              <span title={delivery.url}>{receiverOf(delivery.url).host}</span>
              {delivery.attempt > 1 && <span className="muted">{delivery.attempt} attempts</span>}
              <StatusBadge status={delivery.status} />
            </Link>
          ))}
          {isCut ? (
            <p className="small muted">Older deliveries are not shown.</p>
          ) : (
            own.length === 0 && <p className="small muted">No webhook that you may see was notified.</p>
          )}
        </div>
      )}
    </li>
  );
}

function Changes({
  before,
  after,
}: {
  readonly before: JsonRecord | null;
  readonly after: JsonRecord | null;
}): JSX.Element | null {
  if (before === null || after === null) return null;
  const changed = Object.entries(after).filter(
    ([name, value]) => !isSame(before[name], value) && name !== "updated_at",
  );
  if (changed.length === 0) return null;
  return (
    <ul className="changes">
      {changed.map(([name, value]) => (
        <li key={name} className="break">
          {name}:{" "}
          <del>
            <Value value={before[name]} />
          </del>{" "}
          →{" "}
          <ins>
            <Value value={value} />
          </ins>
        </li>
      ))}
    </ul>
  );
}
