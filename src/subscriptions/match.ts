import type { EventKind } from "../events/event.ts";
import type { Caller } from "../kit/caller.ts";
import { getOrSet, groupBy } from "../kit/group-by.ts";
import type { JudgedEvent, ReaderSelector } from "./eligibility.ts";
import type { EventReaders } from "./find-readers.ts";
import { everyResource } from "./subscription.ts";

/** The part of an event that decides which subscriptions get it. */
export interface MatchedEvent extends JudgedEvent {
  readonly event: EventKind;
}

/** A subscription that may get events, with its user. */
export interface Candidate {
  readonly subscriptionId: number;
  readonly resource: string;
  readonly events: readonly string[];
  readonly user: Caller;
}

/** The subscriptions to one trigger of a resource. */
interface Listeners<C> {
  /** Subscriptions of users who get every event. */
  readonly toAll: C[];
  /** Subscriptions of the other users, by user id. */
  readonly byUser: Map<number, C[]>;
}

/**
 * Returns the candidates that get each event, in the events' order; each list is sorted by id. They
 * name the event's resource, list its trigger, and belong to a user who may get it.
 *
 * Takes time linear in the events, the candidates and the answers. Equal events share an answer.
 */
export function matchEvents<C extends Candidate>({
  events,
  candidates,
  selectors,
}: {
  readonly events: readonly MatchedEvent[];
  readonly candidates: readonly C[];
  /** Selectors by resource, each made of the resource's events in the same order. */
  readonly selectors: ReadonlyMap<string, Pick<ReaderSelector, "choose">>;
}): readonly (readonly C[])[] {
  const answers: (readonly C[])[] = events.map(() => []);
  const eventsOf = groupBy(
    events.map((event, index) => ({ ...event, index })),
    ({ resource }) => resource,
  );
  const named = groupBy(candidates, (candidate) => candidate.resource);
  const ofEvery = named.get(everyResource) ?? [];
  for (const [resource, judged] of eventsOf) {
    // Operational events have their own names, which a subscription to all resources cannot list.
    const own = mergeById(named.get(resource) ?? [], ofEvery);
    if (own.length === 0) continue;
    const users = [...new Map(own.map(({ user }) => [user.id, user])).values()];
    const { ofAll = new Set<number>(), ofEach = [] } = selectors.get(resource)?.choose(users) ?? {};
    const listeners = listenersOf(own, ofAll);
    const known = new Map<string, readonly C[]>();
    judged.forEach(({ event, index }, place) => {
      const others = ofEach[place] ?? [];
      const key = `${event} ${String(others)}`;
      answers[index] = getOrSet(known, key, () => subscribersOf(listeners.get(event), others));
    });
  }
  return answers;
}

/** Merges two lists of candidates by id. The first one is sorted. */
function mergeById<C extends Candidate>(some: readonly C[], others: readonly C[]): readonly C[] {
  if (others.length === 0) return some;
  return [...some, ...others].toSorted((one, other) => one.subscriptionId - other.subscriptionId);
}

function listenersOf<C extends Candidate>(
  candidates: readonly C[],
  ofAll: ReadonlySet<number>,
): ReadonlyMap<string, Listeners<C>> {
  const listeners = new Map<string, Listeners<C>>();
  for (const candidate of candidates)
    for (const trigger of candidate.events) {
      const { toAll, byUser } = getOrSet(listeners, trigger, () => ({ toAll: [], byUser: new Map() }));
      const { id } = candidate.user;
      if (ofAll.has(id)) toAll.push(candidate);
      else getOrSet(byUser, id, () => []).push(candidate);
    }
  return listeners;
}

function subscribersOf<C extends Candidate>(
  listeners: Listeners<C> | undefined,
  users: EventReaders,
): readonly C[] {
  const { toAll = [], byUser = new Map<number, C[]>() } = listeners ?? {};
  const own =
    users === "everybody" ? [...byUser.values()].flat() : users.flatMap((id) => byUser.get(id) ?? []);
  return mergeById(toAll, own);
}
