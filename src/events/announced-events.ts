import { groupBy } from "../kit/group-by.ts";
import { holderOf, type OutboxEvent } from "./outbox.ts";
import { startPublishing } from "./relay-publish.ts";
import { isNew, type RelayState } from "./relay-state.ts";

/**
 * Publishes events of this process as soon as their transaction is committed, without a read of the
 * outbox. What must wait stays in the outbox, and the relay is woken to read it.
 *
 * @returns Ends it.
 */
export function publishAnnounced(state: RelayState): () => void {
  let gathered: OutboxEvent[] = [];
  let isPlanned = false;
  const publish = (): void => {
    const free = gathered.filter((event) => isFree(state, event));
    if (free.length < gathered.length) state.alarm.wake();
    [gathered, isPlanned] = [[], false];
    state.pace.note(free.length);
    for (const [resource, events] of groupBy(free, ({ resource: name }) => name))
      void startPublishing(state, resource, events);
  };
  const unlisten = state.options.notices.listen((details) => {
    for (const detail of details)
      if (detail === "") state.alarm.wake();
      else gathered.push(JSON.parse(detail) as OutboxEvent);
    if (isPlanned || gathered.length === 0) return;
    isPlanned = true;
    const waitMs = state.pace.waitMs();
    // Publishes after the answer to the writer, which then takes 0.4 ms less.
    if (waitMs === 0) setImmediate(publish);
    // Messages one by one would cost the broker and the dispatchers a sixth more at full speed.
    else setTimeout(publish, waitMs);
  });
  return () => {
    unlisten();
    gathered = [];
  };
}

/** Returns whether the event can be published now. If not, it stays in the outbox. */
function isFree(state: RelayState, event: OutboxEvent): boolean {
  const { window, busy, resting, slow, options } = state;
  const { resource } = event;
  // Costly resources have few places, whose turns the reads divide.
  const isHeldUp = busy.has(resource) || resting.has(resource) || window.roomOf(resource) < Infinity;
  if (isHeldUp || !options.broker.isConnected() || !options.resources.includes(resource)) return false;
  if (slow.has(event) || !isNew(state, event)) return false;
  const { used, free } = window.limits();
  const { events, bytes } = used.get(holderOf(event)) ?? { events: 0, bytes: 0 };
  return events < free.events && bytes < free.bytes;
}
