import type { EventEnvelope } from "../events/event.ts";
import type { Caller } from "../kit/caller.ts";
import type { Sql } from "../db/sql.ts";
import { databaseFaultOf } from "../db/prisma-errors.ts";
import type { AccessRule, Definition, Definitions } from "../mapping/definition.ts";
import type { Condition } from "../querying/condition.ts";
import { isAdminFor, type AccessConditions } from "../resources/access.ts";
import { groupBy } from "../kit/group-by.ts";
import { judgeSnapshots, pairKey, type JudgedPair } from "./snapshot-judge.ts";
import type { Log } from "../telemetry/log.ts";

/** The part of an event that decides who may get it. */
export interface JudgedEvent extends Pick<EventEnvelope, "resource" | "owner_id"> {
  /** Row id, as a decimal string; a filter finds the snapshot by it. */
  readonly id?: string;
}

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
 * Decides who gets an event (docs/webhooks.md, "Who gets an event"): the admins of its resource,
 * and those who may read its record. `access.read` of the mapping file decides on the record as it
 * was then. No other place knows this rule: the fan-out asks for many events at once, the sweep
 * before each later attempt. Never rejects for a fault of a code module.
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

export interface EligibilityOptions {
  readonly definitions: Definitions;
  readonly access: Pick<AccessConditions, "readFilter">;
  /** Reads the snapshots of events. */
  readonly sql: Sql;
  readonly log: Log;
}

export function createEligibility(options: EligibilityOptions): Eligibility {
  const { definitions } = options;
  const ruleOf = (resource: string): AccessRule["kind"] =>
    definitions.get(resource)?.access.read.kind ?? "owner";
  return {
    audiencesOf(resource, events) {
      const rule = ruleOf(resource);
      // A filter may let everyone in; it decides on those who subscribe.
      if (rule === "everyone" || rule === "filter") return [{ kind: "everybody" }];
      const admins = adminsOf(definitions, resource);
      return rule === "admin" ? admins : [...admins, ...ownersOf(events)];
    },
    async readersOf({ resource, events, users }) {
      const isOfAll = (user: Caller): boolean =>
        ruleOf(resource) === "everyone" || isAdminOf(options, resource, user);
      const ofAll = new Set(users.filter(isOfAll).map(({ id }) => id));
      const others = users.filter(({ id }) => !ofAll.has(id));
      return { ofAll, ofEach: await readersOfEach(options, resource, events, others) };
    },
    async judge(pairs) {
      const filtered = pairs.filter(({ event }) => ruleOf(event.resource) === "filter");
      const readable = new Set<(typeof pairs)[number]>();
      for (const [resource, own] of groupBy(filtered, ({ event }) => event.resource)) {
        const passed = await judgeFilter(options, resource, own);
        for (const pair of own)
          if (passed.has(pairKey(pair.event.id ?? "", pair.user.id))) readable.add(pair);
      }
      return pairs.map((pair) => {
        const { event, user } = pair;
        const rule = ruleOf(event.resource);
        if (rule === "everyone" || isAdminOf(options, event.resource, user)) return true;
        return rule === "owner" ? event.owner_id === ownerIdOf(user) : readable.has(pair);
      });
    },
  };
}

/** Returns for each event the ids of the users who read it. */
async function readersOfEach(
  options: EligibilityOptions,
  resource: string,
  events: readonly JudgedEvent[],
  users: readonly Caller[],
): Promise<readonly (readonly number[])[]> {
  const rule = options.definitions.get(resource)?.access.read.kind ?? "owner";
  if (rule === "filter") return filteredReaders(options, resource, events, users);
  if (rule !== "owner") return events.map(() => []);
  const byOwner = new Map(users.map((user) => [ownerIdOf(user), user.id]));
  return events.map(({ owner_id: owner }) => {
    const id = owner === null ? undefined : byOwner.get(owner);
    return id === undefined ? [] : [id];
  });
}

/**
 * Judges a few events at a time: 200 events and 100,000 users would be 20 million pairs in memory.
 */
async function filteredReaders(
  options: EligibilityOptions,
  resource: string,
  events: readonly JudgedEvent[],
  users: readonly Caller[],
): Promise<readonly (readonly number[])[]> {
  const readers: (readonly number[])[] = [];
  const atOnce = Math.max(1, Math.floor(mostPairs / Math.max(1, users.length)));
  for (let start = 0; start < events.length; start += atOnce) {
    const portion = events.slice(start, start + atOnce);
    const pairs = portion.flatMap((event) => users.map((user) => ({ event, user })));
    const passed = await judgeFilter(options, resource, pairs);
    for (const { id = "" } of portion)
      readers.push(users.flatMap((user) => (passed.has(pairKey(id, user.id)) ? [user.id] : [])));
  }
  return readers;
}

/** Most pairs of an event and a user in one statement: each may look up related rows. */
const mostPairs = 20_000;

/** Returns the keys of the pairs that pass the filter of `access.read`. */
async function judgeFilter(
  options: EligibilityOptions,
  resource: string,
  pairs: readonly { readonly event: JudgedEvent; readonly user: Caller }[],
): Promise<ReadonlySet<string>> {
  const definition = options.definitions.get(resource);
  const filter = definition && options.access.readFilter(definition);
  if (definition === undefined || filter === undefined) return new Set();
  const known = pairs.flatMap(({ event: { id }, user }) => (id === undefined ? [] : [{ eventId: id, user }]));
  const passed = new Set<string>();
  for (let start = 0; start < known.length; start += mostPairs) {
    const found = await judgeTogether(options, definition, filter, known.slice(start, start + mostPairs));
    for (const key of found) passed.add(key);
  }
  return passed;
}

/**
 * Judges snapshots in one statement. Only admins read a snapshot that no longer fits the table: the
 * type of a column has changed.
 */
async function judgeTogether(
  options: EligibilityOptions,
  definition: Definition,
  filter: Condition,
  pairs: readonly JudgedPair[],
): Promise<ReadonlySet<string>> {
  try {
    return await judgeSnapshots(options.sql, definition, filter, pairs);
  } catch (error) {
    if (databaseFaultOf(error).kind === "unavailable") throw error;
    const ids = [...new Set(pairs.map(({ eventId }) => eventId))];
    if (ids.length === 1) {
      options.log.error({ err: error, resource: definition.name, eventId: ids[0] }, "access.read failed");
      return new Set();
    }
    const passed = new Set<string>();
    for (const id of ids) {
      const own = pairs.filter(({ eventId }) => eventId === id);
      for (const key of await judgeTogether(options, definition, filter, own)) passed.add(key);
    }
    return passed;
  }
}

/** Returns the `owner_id` of the events of a user's records. */
function ownerIdOf({ id }: Caller): string {
  return String(id);
}

function isAdminOf(
  { definitions, log }: Pick<EligibilityOptions, "definitions" | "log">,
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
