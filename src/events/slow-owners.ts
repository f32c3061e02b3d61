import { setBounded } from "../kit/bounded-map.ts";
import type { OutboxEvent } from "./outbox.ts";

type OwnedEvent = Pick<OutboxEvent, "resource" | "ownerId" | "recordId">;

/**
 * Owners whose events take longer to present than a statement may, although others of the resource
 * are presented. Without this, one who changed such a record every 3 s delayed all others by 23 s.
 */
export interface SlowOwners {
  /** Returns whether a new event is tried apart, like one that has failed. */
  has(event: OwnedEvent): boolean;
  /** Returns the same text for failed events that are tried together. */
  groupOf(event: OwnedEvent): string;
  /** Notes that events of a resource were presented. */
  presented(resource: string): void;
  /**
   * Notes that events of one resource took too long together. Returns whether this means that the
   * resource fails as a whole: new ones did so twice, and none was presented between.
   *
   * @param startedAtMs When they were begun. Their owner is slow when others were presented since.
   */
  tookTooLong(
    events: readonly OwnedEvent[],
    options: { readonly startedAtMs: number; readonly areNew: boolean },
  ): boolean;
}

/** How long owners and resources are treated as slow. */
const slowForMs = 60_000;
const mostOwners = 10_000;

/** @param now Monotonic clock, in ms. */
export function createSlowOwners({ now }: { readonly now: () => number }): SlowOwners {
  const slowUntilMs = new Map<string, number>();
  const presentedAtMs = new Map<string, number>();
  const tooLongAtMs = new Map<string, number>();
  const has = (event: OwnedEvent): boolean => (slowUntilMs.get(nameOf(event)) ?? 0) > now();
  return {
    has: (event) => slowUntilMs.size > 0 && has(event),
    groupOf(event) {
      const isSplit = has(event) || now() - (tooLongAtMs.get(event.resource) ?? -Infinity) < slowForMs;
      return isSplit ? nameOf(event) : event.resource;
    },
    presented: (resource) => void presentedAtMs.set(resource, now()),
    tookTooLong(events, { startedAtMs, areNew }) {
      const [first] = events;
      if (first === undefined) return false;
      const { resource } = first;
      const name = nameOf(first);
      const presentedMs = presentedAtMs.get(resource) ?? -Infinity;
      if (presentedMs > startedAtMs && events.every((event) => nameOf(event) === name))
        setBounded(slowUntilMs, [name, now() + slowForMs], mostOwners);
      if (!areNew) return false;
      const isAgain = (tooLongAtMs.get(resource) ?? -Infinity) > presentedMs;
      tooLongAtMs.set(resource, now());
      return isAgain;
    },
  };
}

/** Returns a name of the owner in its resource, or of the record where it has no owner. */
function nameOf({ resource, ownerId, recordId }: OwnedEvent): string {
  return ownerId === null ? `${resource} record ${recordId}` : `${resource} ${ownerId}`;
}
