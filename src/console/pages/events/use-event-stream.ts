import { useEffect, useState } from "react";
import { ApiError, isStatus } from "../../api/api-error.ts";
import { apiResponse } from "../../api/client.ts";
import { readMessages } from "../../api/event-stream.ts";
import type { ServiceEvent } from "../../api/types.ts";

/** State of a stream. A `refused` stream does not restart by itself. */
export type StreamState = "off" | "connecting" | "live" | "away" | "refused";

interface EventStream {
  readonly state: StreamState;
  /** The shown events, newest first, and one more if there are more. */
  readonly events: readonly ServiceEvent[];
  readonly error: unknown;
}

/** Most events that are shown; older ones are on the next page. */
export const mostShown = 500;
const shortestWait = 1_000;
const longestWait = 15_000;
/** Longest time without data. The service sends a comment every 15 s. */
const longestSilence = 45_000;

const nothing: EventStream = { state: "off", events: [], error: null };
/**
 * Initial state of a stream. The key shows which events belong to another list, so that they are
 * dropped.
 */
const unfollowed: EventStream & { readonly key: string | null } = {
  ...nothing,
  state: "connecting",
  key: null,
};

/**
 * Streams new events after an event. A stream that ends restarts after the last event, so that no
 * event is missed.
 *
 * @param query Filters of the list, as a query string without `?`.
 * @param after Id of the event after which the stream begins; null while it is unknown.
 */
export function useEventStream({
  isOn,
  query,
  after,
}: {
  readonly isOn: boolean;
  readonly query: string;
  readonly after: number | null;
}): EventStream {
  const [stream, setStream] = useState(unfollowed);
  const key = isOn && after !== null ? `${query} ${after}` : null;
  useEffect(() => {
    if (key === null) return undefined;
    const controller = new AbortController();
    const { signal } = controller;
    const update = (change: (before: EventStream) => Partial<EventStream>): void => {
      if (signal.aborted) return;
      setStream((last) => {
        const before = last.key === key ? last : { ...unfollowed, key };
        return { ...before, ...change(before) };
      });
    };
    void follow({
      query,
      after: String(after),
      signal,
      onState: (changes) => update(() => changes),
      onEvent: (event) => update(({ events }) => ({ events: [event, ...events].slice(0, mostShown + 1) })),
    });
    return () => controller.abort();
  }, [key, query, after]);
  if (key === null) return nothing;
  return stream.key === key ? stream : unfollowed;
}

async function follow({
  query,
  after,
  signal,
  onState,
  onEvent,
}: {
  readonly query: string;
  readonly after: string;
  readonly signal: AbortSignal;
  readonly onState: (changes: Partial<EventStream>) => void;
  readonly onEvent: (event: ServiceEvent) => void;
}): Promise<void> {
  let last = after;
  let wait = shortestWait;
  while (!signal.aborted) {
    const silence = watchSilence(signal);
    try {
      const response = await apiResponse(`/events/stream?${query}`, {
        isEndless: true,
        signal: silence.signal,
        headers: { "Last-Event-ID": last },
      });
      onState({ state: "live", error: null });
      wait = shortestWait;
      if (response.body !== null)
        for await (const { id, data } of readMessages(response.body)) {
          silence.heard();
          last = id ?? last;
          if (data !== null) onEvent(JSON.parse(data) as ServiceEvent);
        }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ApiError && isRefusal(error.status)) {
        onState({ state: "refused", error });
        return;
      }
      onState({ state: "away", error });
      // While signed out, no request is sent, so short waits are cheap and a new token is noticed
      // soon.
      wait = isStatus(error, 401) ? shortestWait : Math.min(longestWait, wait * 2);
    } finally {
      silence.end();
    }
    await pause(wait, signal);
  }
}

/** Aborts a stream that sends nothing, not even a comment, because its connection is lost. */
function watchSilence(signal: AbortSignal): {
  readonly signal: AbortSignal;
  readonly heard: () => void;
  readonly end: () => void;
} {
  const controller = new AbortController();
  const begin = (): ReturnType<typeof setTimeout> =>
    setTimeout(() => controller.abort(new Error("Nothing was heard.")), longestSilence);
  let timer = begin();
  return {
    signal: AbortSignal.any([signal, controller.signal]),
    heard: () => {
      clearTimeout(timer);
      timer = begin();
    },
    end: () => clearTimeout(timer),
  };
}

function isRefusal(status: number): boolean {
  return status >= 400 && status < 500 && status !== 401 && status !== 429;
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
