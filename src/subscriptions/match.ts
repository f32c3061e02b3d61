import type { EventEnvelope } from "../events/event.ts";
import type { Caller } from "../kit/caller.ts";

/** Of an event, what decides who gets it. */
export type Asked = Pick<EventEnvelope, "resource" | "event" | "owner_id">;

interface Candidate {
  readonly subscriptionId: number;
  readonly resource: string;
  readonly events: readonly string[];
  readonly user: Caller;
}

/** What a resource's subscriptions to one trigger are told apart by. Those of admins are nobody's among `owned`. */
interface Group<C> {
  readonly admins: C[];
  readonly owned: Map<string, C[]>;
}

/**
 * The candidates that get each event, in the events' order: they name its resource and list its trigger, and their user may see
 * the record, as the owner when the event happened or as an admin for the resource (contract, section 4).
 *
 * Takes the time of the events, the candidates and the answers; events alike share an answer.
 *
 * @param candidates Active, of users who are not disabled, by id.
 * @param isAdminFor Asked once for each resource and user.
 */
export function matchEvents<C extends Candidate>({
  events,
  candidates,
  isAdminFor,
}: {
  readonly events: readonly Asked[];
  readonly candidates: readonly C[];
  readonly isAdminFor: (resource: string, user: Caller) => boolean;
}): readonly (readonly C[])[] {
  const groups = new Map<string, Group<C>>();
  const admins = new Map<string, boolean>();
  for (const candidate of candidates) {
    const { resource, user } = candidate;
    const isAdmin = known(admins, keyOf(resource, user.id), () => isAdminFor(resource, user));
    for (const trigger of candidate.events) {
      const group = known(groups, keyOf(resource, trigger), () => ({ admins: [], owned: new Map() }));
      if (isAdmin) group.admins.push(candidate);
      else known(group.owned, String(user.id), () => []).push(candidate);
    }
  }

  const answers = new Map<string, readonly C[]>();
  return events.map(({ resource, event, owner_id: owner }) =>
    known(answers, keyOf(resource, event, owner), () => {
      const group = groups.get(keyOf(resource, event));
      const owned = owner === null ? undefined : group?.owned.get(owner);
      if (group === undefined || owned === undefined) return group?.admins ?? [];
      return [...group.admins, ...owned].toSorted((one, other) => one.subscriptionId - other.subscriptionId);
    }),
  );
}

function keyOf(...parts: readonly (string | number | null)[]): string {
  return JSON.stringify(parts);
}

/** The value of a key, computed when it is first asked for. */
function known<V>(values: Map<string, V>, key: string, compute: () => V): V {
  const value = values.get(key) ?? compute();
  values.set(key, value);
  return value;
}
