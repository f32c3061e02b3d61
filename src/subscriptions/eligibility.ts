import type { EventEnvelope } from "../events/event.ts";
import type { Caller } from "../kit/caller.ts";
import type { Definitions } from "../mapping/definition.ts";
import { isAdminFor } from "../resources/access.ts";
import type { Log } from "../telemetry/log.ts";

/** The part of an event that decides who may get it. */
export type JudgedEvent = Pick<EventEnvelope, "resource" | "owner_id">;

/** A group of users that may include readers of an event. */
export type Audience =
  | { readonly kind: "owner"; readonly userId: number }
  | { readonly kind: "email"; readonly email: string }
  | { readonly kind: "flag" | "everybody" };

/** Which of some users get which of some events of one resource. */
export interface Readers {
  /** Ids of the users who get every event of the resource. */
  readonly ofAll: ReadonlySet<number>;
  /** Ids of the other users who get each event, in the events' order. */
  readonly ofEach: readonly (readonly number[])[];
}

/**
 * Decides who gets an event: the owner of its record at the time of the event, and the admins of
 * its resource (contract, section 4). The only place that knows this rule: the fan-out asks for
 * many events at once, the sweep before each later attempt. Never rejects for a fault of a code
 * module.
 */
export interface Eligibility {
  /**
   * Returns groups that together include every user who gets any of these events of one resource.
   */
  audiencesOf(resource: string, events: readonly JudgedEvent[]): readonly Audience[];
  /** Judges users against events of one resource, each user once. */
  readersOf(options: {
    readonly resource: string;
    readonly events: readonly JudgedEvent[];
    readonly users: readonly Caller[];
  }): Promise<Readers>;
  /** Returns for each pair whether the user gets the event. */
  judge(
    pairs: readonly { readonly event: JudgedEvent; readonly user: Caller }[],
  ): Promise<readonly boolean[]>;
}

export function createEligibility({
  definitions,
  log,
}: {
  readonly definitions: Definitions;
  readonly log: Log;
}): Eligibility {
  const isAdmin = (resource: string, user: Caller): boolean =>
    isAdminOf({ definitions, log }, resource, user);
  return {
    audiencesOf: (resource, events) => [...adminsOf(definitions, resource), ...ownersOf(events)],
    async readersOf({ resource, events, users }) {
      const isOfAdmin = (user: Caller): boolean => isAdmin(resource, user);
      const ofAll = new Set(users.filter(isOfAdmin).map(({ id }) => id));
      const others = new Map(
        users.filter(({ id }) => !ofAll.has(id)).map((user) => [ownerIdOf(user), user.id]),
      );
      return {
        ofAll,
        ofEach: events.map(({ owner_id: owner }) => {
          const id = owner === null ? undefined : others.get(owner);
          return id === undefined ? [] : [id];
        }),
      };
    },
    async judge(pairs) {
      return pairs.map(
        ({ event, user }) => event.owner_id === ownerIdOf(user) || isAdmin(event.resource, user),
      );
    },
  };
}

/** Returns the `owner_id` of the events of a user's records. */
function ownerIdOf({ id }: Caller): string {
  return String(id);
}

function isAdminOf(
  { definitions, log }: { readonly definitions: Definitions; readonly log: Log },
  resource: string,
  user: Caller,
): boolean {
  const definition = definitions.get(resource);
  // A resource that left the mapping files has no admins: its pending deliveries stay with the
  // owners.
  if (definition === undefined) return false;
  try {
    return isAdminFor(definition, user);
  } catch (error) {
    // Counts as no: the fault of one code module must not hold up the events of all resources.
    log.error({ err: error, resource }, "isAdmin failed");
    return false;
  }
}

function adminsOf(definitions: Definitions, resource: string): readonly Audience[] {
  const definition = definitions.get(resource);
  if (definition === undefined) return [];
  // Only the code module knows its answer: every user may be an admin.
  if (definition.code.isAdmin !== undefined) return [{ kind: "everybody" }];
  const rule = definition.isAdmin;
  if (rule.kind === "flag") return [{ kind: "flag" }];
  if (rule.kind === "emails")
    return rule.emails.map((email) => ({ kind: "email", email: email.toLowerCase() }));
  return [];
}

function ownersOf(events: readonly JudgedEvent[]): readonly Audience[] {
  const ids = new Set(events.flatMap(({ owner_id: owner }) => userIdOf(owner) ?? []));
  return [...ids].map((userId) => ({ kind: "owner", userId }));
}

/**
 * Returns the id of the user who may be this owner; undefined for an owner that cannot be a user.
 */
function userIdOf(ownerId: string | null): number | undefined {
  if (ownerId === null || !/^[1-9]\d{0,9}$/.test(ownerId)) return undefined;
  const id = Number(ownerId);
  return id < 2 ** 31 ? id : undefined;
}
