import type { EventEnvelope } from "../events/event.ts";
import type { Caller } from "../kit/caller.ts";
import { idOf } from "../kit/ids.ts";
import type { Sql } from "../db/sql.ts";
import type { AccessRule, Definition, Definitions } from "../mapping/definition.ts";
import { isAdminFor, type AccessConditions } from "../resources/access.ts";
import { groupBy } from "../kit/group-by.ts";
import type { EventReaders } from "./find-readers.ts";
import { filteredReaders, judgeFilter, type Judging, type ReadFilter } from "./read-filter.ts";
import { isService } from "./service-events.ts";
import { pairKey } from "./snapshot-judge.ts";
import type { SnapshotColumn } from "./snapshot-row-sql.ts";
import type { Log } from "../telemetry/log.ts";

/** The part of an event that decides who may get it. */
export interface JudgedEvent extends Pick<EventEnvelope, "resource" | "owner_id"> {
  /** Row id, as a decimal string, by which a filter finds the snapshot. */
  readonly id: string;
}

/** A group of users that may include readers of an event. */
export type UserGroup =
  | { readonly kind: "owner"; readonly userId: number }
  | { readonly kind: "email"; readonly email: string }
  | { readonly kind: "flag" | "everybody" };

/** The events of one resource that each user gets, for some events and some users. */
interface Readers {
  /** Ids of the users who get every event of the resource. */
  readonly ofAll: ReadonlySet<number>;
  /** The other users who get each event, in the events' order. */
  readonly ofEach: readonly EventReaders[];
}

/**
 * Selects who gets some events of one resource, in two steps: a statement reads the subscriptions
 * of the groups, and `choose` judges their users.
 */
export interface ReaderSelector {
  /**
   * Returns groups that together include every user who gets any of these events.
   *
   * @param places Indexes of the events in the given list.
   */
  groupsOf(places: readonly number[]): readonly UserGroup[];
  /** Judges users of these groups, each user once. */
  choose(users: readonly Caller[]): Readers;
}

/**
 * Decides who gets an event (docs/webhooks.md, "Who gets an event"): the admins of its resource,
 * and users who may read its record. `access.read` of the mapping file applies to the record as it
 * was then. This rule is only implemented here: the fan-out asks for many events at once, the sweep
 * before each later attempt. Never rejects for a fault of a code module.
 */
export interface Eligibility {
  /**
   * Returns whether an event of the resource may take long: its cost grows with the subscriptions,
   * or with the rows that a filter looks up.
   */
  isCostly(resource: string): boolean;
  /**
   * Returns whether the resource has a filter, so that separate statements find the readers of its
   * events.
   */
  hasFilter(resource: string): boolean;
  /**
   * Creates the selector of some events of one resource. Runs a statement for a resource with a
   * filter.
   */
  readerSelectorOf(resource: string, events: readonly JudgedEvent[]): Promise<ReaderSelector>;
  /**
   * Returns for each pair whether the user gets the event; undefined when the filter fails and this
   * cannot be decided now.
   *
   * @param which With `previous`, judges whether the user may read the old row of the update.
   */
  judge(
    pairs: readonly { readonly event: JudgedEvent; readonly user: Caller }[],
    which?: SnapshotColumn,
  ): Promise<readonly (boolean | undefined)[]>;
}

interface EligibilityOptions extends Pick<Judging, "quickSql"> {
  readonly definitions: Definitions;
  readonly access: Pick<AccessConditions, "readFilter">;
  /** Reads the snapshots of events. */
  readonly sql: Sql;
  readonly log: Log;
}

export function createEligibility(options: EligibilityOptions): Eligibility {
  const { definitions, access } = options;
  const judging: Judging = { quickSql: options.quickSql, resting: new Map(), slow: new Map() };
  /** Returns the filter of a resource; undefined when its rule is not a filter. */
  const filterOf = (resource: string): ReadFilter | undefined => {
    const definition = definitions.get(resource);
    const condition = definition && access.readFilter(definition);
    return definition && condition && { definition, condition };
  };
  return {
    isCostly: (resource) => isCostly(definitions.get(resource)),
    hasFilter: (resource) => ruleOf(definitions, resource) === "filter",
    async readerSelectorOf(resource, events) {
      const filter = filterOf(resource);
      const ids = events.map(({ id }) => id);
      const ofEach = filter && (await filteredReaders(options, filter, ids));
      return {
        groupsOf: (places) => {
          const asked = places.flatMap((place) => events[place] ?? []);
          const readers = ofEach && places.flatMap((place) => [ofEach[place] ?? []]);
          return groupsOf(options, resource, asked, readers);
        },
        choose(users) {
          const isOfAll = (user: Caller): boolean =>
            ruleOf(definitions, resource) === "everyone" || isAdminOf(options, resource, user);
          const ofAll = new Set(users.filter(isOfAll).map(({ id }) => id));
          const others = users.filter(({ id }) => !ofAll.has(id));
          if (ofEach !== undefined) return { ofAll, ofEach: ofEach.map((one) => keepUsers(one, others)) };
          const isOwned = ruleOf(definitions, resource) === "owner";
          return { ofAll, ofEach: isOwned ? ownersAmong(others, events) : events.map(() => []) };
        },
      };
    },
    async judge(given, which = "snapshot") {
      const pairs = which === "snapshot" ? given : await withOwnersBefore(options, given);
      const verdicts = new Map<(typeof pairs)[number], boolean | undefined>();
      for (const [resource, own] of groupBy(pairs, ({ event }) => event.resource)) {
        const filter = filterOf(resource);
        if (filter === undefined) continue;
        const passed = await judgeFilter({ ...options, ...judging }, filter, own, which);
        for (const pair of own) verdicts.set(pair, passed.get(pairKey(pair.event.id, pair.user.id)));
      }
      return pairs.map((pair) => {
        const { event, user } = pair;
        const rule = ruleOf(definitions, event.resource);
        if (rule === "everyone" || isAdminOf(options, event.resource, user)) return true;
        if (rule === "filter") return verdicts.get(pair);
        return rule === "owner" && event.owner_id === String(user.id);
      });
    },
  };
}

/** See `Eligibility`. */
export function isCostly(definition: Definition | undefined): boolean {
  if (definition === undefined) return false;
  const { access, code } = definition;
  return access.read.kind === "everyone" || access.read.kind === "filter" || code.isAdmin !== undefined;
}

/** Returns who reads a resource: operational events, only users with the admin flag. */
function ruleOf(definitions: Definitions, resource: string): AccessRule["kind"] {
  if (isService(definitions, resource)) return "admin";
  return definitions.get(resource)?.access.read.kind ?? "owner";
}

function groupsOf(
  { definitions }: EligibilityOptions,
  resource: string,
  events: readonly JudgedEvent[],
  ofEach: readonly EventReaders[] | undefined,
): readonly UserGroup[] {
  const rule = ruleOf(definitions, resource);
  const admins = adminGroupsOf(definitions, resource);
  const isForAll = rule === "everyone" || ofEach?.includes("everybody") === true;
  if (isForAll || admins.some(({ kind }) => kind === "everybody")) return [{ kind: "everybody" }];
  if (ofEach === undefined) return rule === "admin" ? admins : [...admins, ...ownerGroupsOf(events)];
  const ids = new Set(ofEach.flatMap((readers) => (readers === "everybody" ? [] : readers)));
  return [...admins, ...[...ids].map((userId): UserGroup => ({ kind: "owner", userId }))];
}

/** Returns for each event its owner, if the owner is among the users. */
function ownersAmong(
  users: readonly Caller[],
  events: readonly JudgedEvent[],
): readonly (readonly number[])[] {
  const byOwner = new Map(users.map(({ id }) => [String(id), id]));
  return events.map(({ owner_id: owner }) => {
    const id = owner === null ? undefined : byOwner.get(owner);
    return id === undefined ? [] : [id];
  });
}

/** Leaves out readers who are not among the users: they get every event anyway, or none. */
function keepUsers(readers: EventReaders, users: readonly Caller[]): EventReaders {
  if (readers === "everybody") return readers;
  const ids = new Set(readers);
  return users.flatMap(({ id }) => (ids.has(id) ? [id] : []));
}

const ownersBeforeText = `
  SELECT event.id, event.previous ->> given.field AS owner
  FROM unnest($1::bigint[], $2::text[]) AS given (id, field) JOIN svc.events AS event ON event.id = given.id`;

/** Returns the pairs with the owners of the old rows; null when an old row had no owner. */
async function withOwnersBefore<P extends { readonly event: JudgedEvent }>(
  { definitions, sql }: EligibilityOptions,
  pairs: readonly P[],
): Promise<readonly P[]> {
  const fields = new Map<string, string>();
  for (const { event } of pairs) {
    const definition = definitions.get(event.resource);
    const { ownerColumn, access } = definition ?? {};
    if (ownerColumn !== undefined && access?.read.kind === "owner") fields.set(event.id, ownerColumn);
  }
  const asked = [[...fields.keys()], [...fields.values()]];
  const rows =
    fields.size === 0 ? [] : await sql<{ id: string; owner: string | null }>(ownersBeforeText, asked);
  const owners = new Map(rows.map(({ id, owner }) => [id, owner]));
  return pairs.map((pair) => ({
    ...pair,
    event: { ...pair.event, owner_id: owners.get(pair.event.id) ?? null },
  }));
}

function isAdminOf(
  { definitions, log }: Pick<EligibilityOptions, "definitions" | "log">,
  resource: string,
  user: Caller,
): boolean {
  if (isService(definitions, resource)) return user.isAdmin;
  const definition = definitions.get(resource);
  // A resource that left the mapping files has no admins: its pending deliveries stay with the
  // owners.
  if (definition === undefined) return false;
  try {
    return isAdminFor(definition, user);
  } catch (error) {
    // Counts as false, because the fault of one code module must not delay the events of all
    // resources.
    log.error({ err: error, resource }, "isAdmin failed");
    return false;
  }
}

function adminGroupsOf(definitions: Definitions, resource: string): readonly UserGroup[] {
  if (isService(definitions, resource)) return [{ kind: "flag" }];
  const definition = definitions.get(resource);
  if (definition === undefined) return [];
  // Only the code module can decide, so every user may be an admin.
  if (definition.code.isAdmin !== undefined) return [{ kind: "everybody" }];
  const rule = definition.isAdmin;
  if (rule.kind === "flag") return [{ kind: "flag" }];
  if (rule.kind === "emails")
    return rule.emails.map((email) => ({ kind: "email", email: email.toLowerCase() }));
  return [];
}

function ownerGroupsOf(events: readonly JudgedEvent[]): readonly UserGroup[] {
  const ids = new Set(events.flatMap(({ owner_id: owner }) => idOf(owner) ?? []));
  return [...ids].map((userId) => ({ kind: "owner", userId }));
}
