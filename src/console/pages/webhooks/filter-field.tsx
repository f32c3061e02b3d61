import { useQuery } from "@tanstack/react-query";
import { useEffect, useState, type JSX } from "react";
import { faultsOf } from "../../api/api-error.ts";
import { api } from "../../api/client.ts";
import type { Json, JsonRecord } from "../../api/types.ts";
import type { TriedEvent } from "../../api/webhook-types.ts";
import { Badge, TriggerBadge } from "../../parts/badge.tsx";
import { AreaField } from "../../parts/field.tsx";
import { ErrorNote, Loading } from "../../parts/state.tsx";
import { Time } from "../../parts/time.tsx";
import { parseFilter, type Draft, type FieldsProps } from "./draft.ts";

const settleMilliseconds = 400;

/** Edits a filter as JSON, and shows beside it which of the last events pass. */
export function FilterField({ draft, onChange, error }: FieldsProps): JSX.Element {
  const { value, fault } = parseFilter(draft.filter);
  const settled = useSettled(JSON.stringify([draft.resource, draft.events, value]));
  const preview = useQuery({
    queryKey: ["/webhooks/preview", settled],
    enabled: fault === undefined && draft.events.length > 0,
    queryFn: ({ signal }) => {
      const [resource, events, filter] = JSON.parse(settled) as readonly unknown[];
      const body = { resource, events, filter };
      return api<{ readonly data: readonly TriedEvent[] }>("/webhooks/preview", {
        method: "POST",
        body,
        signal,
      });
    },
    placeholderData: (before) => before,
  });
  const faults = fault === undefined ? faultsOf(preview.error ?? error, "filter") : [fault];
  const events = preview.data?.data ?? [];
  return (
    <div className="filter-try">
      <AreaField
        label="Filter"
        isCode
        rows={9}
        hint={
          <>
            Only events whose <code>data</code> matches, for example{" "}
            <code>{'{"status": "paid", "amount": {"gte": 100}}'}</code>
          </>
        }
        errors={faults}
        value={draft.filter}
        placeholder="every event"
        onChange={(filter) => onChange({ filter })}
      />
      <section
        className="stack preview"
        aria-label="Preview on the last events"
        aria-busy={preview.isFetching}
      >
        <h3>On the last events</h3>
        {draft.events.length === 0 && <p className="muted">Choose an event first.</p>}
        {preview.isLoading && <Loading />}
        {preview.error !== null && faults.length === 0 && (
          <ErrorNote error={preview.error} onRetry={preview.refetch} />
        )}
        {draft.events.length > 0 && preview.data !== undefined && preview.error === null && (
          <Tried draft={draft} events={events} />
        )}
      </section>
    </div>
  );
}

function Tried({
  draft,
  events,
}: {
  readonly draft: Draft;
  readonly events: readonly TriedEvent[];
}): JSX.Element {
  if (draft.resource === "service")
    return <p className="muted">There is no list of operational events to try it on.</p>;
  if (events.length === 0)
    return <p className="muted">Nothing of the kind has happened yet, so there is nothing to try it on.</p>;
  const paths = pathsOf(parseFilter(draft.filter).value);
  const passing = events.filter(({ passes }) => passes).length;
  return (
    <>
      <p className="small" role="status">
        {passing} of the last {events.length} would be sent.
      </p>
      <ul className="tried">
        {events.map((event) => (
          <li key={event.uuid} className={event.passes ? "" : "passed-by"}>
            <Badge tone={event.passes ? "good" : "neutral"}>{event.passes ? "sent" : "left out"}</Badge>
            <TriggerBadge trigger={event.event} />
            <code className="tried-data">{shortOf(event.data, paths)}</code>
            <span className="muted small">
              <Time value={event.occurred_at} />
            </span>
          </li>
        ))}
      </ul>
    </>
  );
}

/** Returns a short text of the values that the filter reads; without a filter, of the record. */
function shortOf(data: JsonRecord | null, paths: readonly string[]): string {
  if (data === null) return "(no data)";
  const shown =
    paths.length === 0 ? data : Object.fromEntries(paths.map((path) => [path, valueAt(data, path)]));
  return JSON.stringify(shown).slice(0, 300);
}

function pathsOf(filter: Json | undefined): readonly string[] {
  if (typeof filter !== "object" || filter === null || Array.isArray(filter)) return [];
  const found = Object.entries(filter).flatMap(([key, value]) =>
    key === "and" || key === "or" || key === "not" ? [value].flat().flatMap(pathsOf) : [key],
  );
  return [...new Set(found)];
}

function valueAt(data: JsonRecord, path: string): Json | undefined {
  let value: Json | undefined = data;
  for (const key of path.split(".")) {
    // Shows a whole list, because each item has its own value.
    if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
    value = (value as JsonRecord)[key];
  }
  return value;
}

/** Returns a text once it has not changed for a moment. */
function useSettled(text: string): string {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), settleMilliseconds);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}
