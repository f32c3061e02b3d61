import { groupBy } from "../kit/group-by.ts";
import { holderOf, type FoundEvent, type OutboxEvent } from "./outbox.ts";
import { startPublishing } from "./relay-publish.ts";
import { isNew, type RelayState } from "./relay-state.ts";

/**
 * Publishes events of this process as soon as their transaction is committed, without a read of the
 * outbox. What must wait stays in the outbox, and a read finds it: the relay is woken.
 *
 * @returns Ends it.
 */
export function publishAnnounced(state: RelayState): () => void {
  return state.options.notices.listen((details) => {
    const announced = details.flatMap((detail) => (detail === "" ? [] : [JSON.parse(detail) as OutboxEvent]));
    const free = state.options.broker.isConnected() ? announced.filter((event) => isFree(state, event)) : [];
    state.pace.note(free.length);
    for (const [resource, events] of groupBy(free, ({ resource: name }) => name))
      void startPublishing(state, resource, events);
    if (free.length < details.length) state.alarm.wake();
  });
}

/** Returns whether the event may be published before all that waits. */
function isFree(state: RelayState, event: FoundEvent): boolean {
  const { window, busy, resting, slow, options } = state;
  const { resource } = event;
  // Costly resources have few places, whose turns the reads divide.
  const isHeldUp = busy.has(resource) || resting.has(resource) || window.roomOf(resource) < Infinity;
  if (isHeldUp || !options.resources.includes(resource) || slow.has(event) || !isNew(state, event))
    return false;
  const { used, free } = window.limits();
  const { events, bytes } = used.get(holderOf(event)) ?? { events: 0, bytes: 0 };
  return events < free.events && bytes < free.bytes;
}
