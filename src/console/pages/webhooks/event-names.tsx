import type { JSX } from "react";
import { TriggerBadge } from "../../parts/badge.tsx";

/** Shows the events of a webhook. */
export function EventNames({ events }: { readonly events: readonly string[] }): JSX.Element {
  return (
    <span className="event-names">
      {events.map((event) => (
        <TriggerBadge key={event} trigger={event} />
      ))}
    </span>
  );
}
