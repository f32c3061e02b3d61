import type { Sql } from "../db/sql.ts";
import { serviceResource } from "../events/event.ts";
import { noClaims, type Caller } from "../kit/caller.ts";
import type { UserGroup, ReaderSelector, Eligibility } from "./eligibility.ts";
import type { FilteredEvent } from "./filter-answers.ts";
import type { WebhookFilters } from "./filters.ts";
import { groupBy } from "../kit/group-by.ts";
import { byIdText, matchOff, offText } from "./find-off.ts";
import { createKnownSubscribers, type KnownAt } from "./known-subscribers.ts";
import type { SealedSigning } from "./signing.ts";
import { matchEvents, type Candidate, type MatchedEvent } from "./match.ts";
import type { Subscriber } from "./subscriber.ts";
import { everyResource } from "./subscription.ts";

type Found = Candidate & Subscriber & { readonly filter: string | null };
interface FoundRow extends Omit<Found, "user" | "signing">, Omit<Caller, "id">, SealedSigning {
  readonly userId: number;
}
/**
 * A row of an answer. An answer that is kept has the time of the read. Without subscriptions, it
 * has one row with this time alone.
 */
type AnswerRow = Partial<KnownAt> & (FoundRow | { readonly subscriptionId: null });

const columns = `subscription_id AS "subscriptionId", resource, events, url, encrypted_secret AS "encryptedSecret",
    user_id AS "userId", name, email, is_admin AS "isAdmin",
    encrypted_headers AS "encryptedHeaders", encrypted_previous AS "encryptedPrevious", rate_limit AS "rateLimit", filter`;
// One statement has one snapshot. With two, a subscription that is switched on or off between them
// would be in neither. Its event would be lost.
const findText = (users?: string): string => `
  SELECT ${columns}, true AS "isActive" FROM svc.possible_subscribers($1, $2, $3, $4, $5)
  UNION ALL
  SELECT ${columns}, false FROM (${offText("$6", "$7", users)}) AS off`;
const findAllText = findText();
/** Selects the users of the requested groups, none of which is everybody. */
const askedUsersText = `
  SELECT unnest($4::int[]) UNION ALL SELECT id FROM svc.users WHERE is_admin AND 'flag' = ANY($3::text[])
  UNION ALL SELECT id FROM svc.users WHERE lower(email) = ANY($5::text[])`;
const offIdsText = `SELECT subscription_id AS id FROM (${offText("$1", "$2")}) AS off`;
const findByIdText = `SELECT ${columns}, false AS "isActive" FROM (${byIdText("$1")}) AS given`;
// `now()` is before the statement's snapshot.
const answerText = `
  SELECT (SELECT pg_current_snapshot()::text) AS snapshot, (extract(epoch FROM now()) * 1000)::float8 AS "readAtMs", found.*
  FROM (SELECT 1) AS always LEFT JOIN (${findText(askedUsersText)}) AS found ON true`;

/** A row of the arguments of `svc.possible_subscribers`: a trigger and a group of users. */
type CandidateQuery = readonly [
  resource: string,
  trigger: string,
  kind: UserGroup["kind"],
  userId: number | null,
  email: string | null,
];

type FinderEvent = MatchedEvent & FilteredEvent;

/** Subscribers of each event of a batch, in the events' order. Each list is sorted by id. */
type Subscribers = readonly (readonly Subscriber[])[];

/** Finds who gets events. */
export interface SubscriberFinder {
  /** Reads the subscribers from the database, and caches the answer for `findKnown`. */
  find(events: readonly FinderEvent[]): Promise<Subscribers>;
  /**
   * Finds the subscribers in memory, without a statement; undefined when they are not known. The
   * caller's write must check that no subscription has changed since `knownAt`.
   *
   * @param most Most subscribers of an answer, before their filters are applied.
   */
  findKnown(
    events: readonly FinderEvent[],
    most: number,
  ): Promise<{ readonly subscribers: Subscribers; readonly knownAt: KnownAt } | undefined>;
  /** Clears the memory after a change. */
  forget(): void;
}

interface SubscriberFinderOptions {
  readonly sql: Sql;
  readonly eligibility: Pick<Eligibility, "isCostly" | "hasFilter" | "readerSelectorOf" | "judge">;
  readonly filters: Pick<WebhookFilters, "passing">;
  /** How long a subscription that is off still gets deliveries. */
  readonly holdForMs: number;
  /** Monotonic clock, in ms. */
  readonly now: () => number;
}

/**
 * Creates the finder of the subscriptions that get each event of a batch. One statement finds
 * candidates, from the distinct owners, readers and admins to their subscriptions. It takes 3 to 10
 * ms for 200 users, however many users subscribe to the resource. `matchEvents` then decides. A
 * resource with a filter in `access.read` takes two more statements, see `findReaders` and
 * `offBefore`.
 *
 * When code decides who is an admin, or everyone may read, the statement reads all active
 * subscriptions to the triggers. This takes 1 to 3 s for 100,000. These answers are not cached.
 */
export function createSubscriberFinder(options: SubscriberFinderOptions): SubscriberFinder {
  const { sql, eligibility, holdForMs, now } = options;
  const known = createKnownSubscribers<Found>({ idOf: ({ subscriptionId }) => subscriptionId, bytesOf, now });
  const isKept = (events: readonly FinderEvent[]): boolean =>
    events.length > 0 && !events.some(({ resource }) => eligibility.isCostly(resource));
  return {
    async find(events) {
      if (events.length === 0) return [];
      const offIds = await offBefore(options, events);
      const selectors = await selectorsOf(options, events);
      const queries = candidateQueries(events, selectors);
      const asked = [0, 1, 2, 3, 4].map((column) => queries.map((query) => query[column]));
      const values = [...asked, holdForMs, [...selectors.keys()]];
      const askedAtMs = now();
      const answer = await sql<AnswerRow>(isKept(events) ? answerText : findAllText, values);
      const found = answer.flatMap((row) => (row.subscriptionId === null ? [] : [foundOf(row)]));
      const { snapshot, readAtMs } = answer[0] ?? {};
      if (snapshot !== undefined && readAtMs !== undefined)
        known.keep(candidatesByQuery(queries, found), { knownAt: { snapshot, readAtMs }, askedAtMs });
      const off = await withIds(sql, offIds, found);
      return options.filters.passing(events, await match(options, { events, selectors, found, off }));
    },
    async findKnown(events, most) {
      if (!isKept(events)) return undefined;
      const selectors = await selectorsOf(options, events);
      const answer = known.find(candidateQueries(events, selectors).map(queryKey));
      if (answer === undefined) return undefined;
      const matched = await match(options, { events, selectors, found: answer.rows, off: [] });
      // Skips the filters, which are costly, because their results would not be used.
      if (sum(matched.map(({ length }) => length)) > most) return undefined;
      return { subscribers: await options.filters.passing(events, matched), knownAt: answer.knownAt };
    },
    forget: () => known.forget(),
  };
}

async function selectorsOf(
  { eligibility }: Pick<SubscriberFinderOptions, "eligibility">,
  events: readonly FinderEvent[],
): Promise<ReadonlyMap<string, ReaderSelector>> {
  const selectors = new Map<string, ReaderSelector>();
  for (const [resource, own] of groupBy(events, (event) => event.resource))
    selectors.set(resource, await eligibility.readerSelectorOf(resource, own));
  return selectors;
}

/**
 * Returns the ids of the subscriptions that are off, to resources with a filter. They are read
 * before the readers of the events are looked up. Otherwise, a subscription that was off for long
 * and is switched on in between would get nothing: it is neither among the readers nor off.
 */
async function offBefore(
  { sql, eligibility, holdForMs }: SubscriberFinderOptions,
  events: readonly FinderEvent[],
): Promise<ReadonlySet<number>> {
  const names = events.map(({ resource }) => resource);
  const resources = new Set(names.filter((name) => eligibility.hasFilter(name)));
  if (resources.size === 0) return new Set();
  const rows = await sql<{ readonly id: number }>(offIdsText, [holdForMs, [...resources]]);
  return new Set(rows.map(({ id }) => id));
}

/** Returns the subscriptions with these ids. Reads those that are not among the found ones. */
async function withIds(
  sql: Sql,
  ids: ReadonlySet<number>,
  found: readonly Found[],
): Promise<readonly Found[]> {
  const there = found.filter(({ subscriptionId }) => ids.has(subscriptionId));
  const thereIds = new Set(there.map(({ subscriptionId }) => subscriptionId));
  const missing = [...ids].filter((id) => !thereIds.has(id));
  if (missing.length === 0) return there;
  return [...there, ...(await sql<FoundRow>(findByIdText, [missing])).map(foundOf)];
}

/** Decides which of the candidates get each event, before their filters are applied. */
async function match(
  { eligibility }: Pick<SubscriberFinderOptions, "eligibility">,
  {
    events,
    selectors,
    found,
    off: before,
  }: {
    readonly events: readonly FinderEvent[];
    readonly selectors: ReadonlyMap<string, ReaderSelector>;
    readonly found: readonly Found[];
    /** Subscriptions that were off before the readers were found. */
    readonly off: readonly Found[];
  },
): Promise<readonly (readonly Found[])[]> {
  const active = matchEvents({ events, candidates: found.filter(({ isActive }) => isActive), selectors });
  const offNow = found.filter(({ isActive }) => !isActive);
  const off = new Map([...before, ...offNow].map((one) => [one.subscriptionId, one]));
  if (off.size === 0) return active;
  const held = await matchOff(events, [...off.values()], eligibility);
  return active.map((own, index) => {
    const ids = new Set(own.map(({ subscriptionId }) => subscriptionId));
    return [...own, ...(held[index] ?? []).filter(({ subscriptionId }) => !ids.has(subscriptionId))];
  });
}

const queryKey = (query: CandidateQuery): string => JSON.stringify(query);

/**
 * Yields the candidates of each query, also those that are off. Compares like `matchEvents`, so
 * that it leaves out no candidate that would be chosen.
 */
function* candidatesByQuery(
  queries: readonly CandidateQuery[],
  found: readonly Found[],
): Generator<readonly [key: string, found: readonly Found[]]> {
  const byUser = groupBy(found, ({ user }) => user.id);
  const byEmail = groupBy(found, ({ user }) => user.email.toLowerCase());
  const flagged = found.filter(({ user }) => user.isAdmin);
  for (const query of queries) {
    const [resource, trigger, kind, userId, email] = query;
    if (kind === "everybody") continue;
    const ofEmail = (): readonly Found[] => byEmail.get(email ?? "") ?? [];
    const ofOwner = (): readonly Found[] => byUser.get(userId ?? 0) ?? [];
    const theirs = kind === "flag" ? flagged : kind === "email" ? ofEmail() : ofOwner();
    const names = [resource, everyResource];
    const own = theirs.filter((one) => names.includes(one.resource) && one.events.includes(trigger));
    yield [queryKey(query), own];
  }
}

/** Returns the approximate bytes of a row in memory. */
function bytesOf({ url, filter, signing }: Found): number {
  const { encryptedSecret, encryptedHeaders, encryptedPrevious } = signing;
  const sealed = [encryptedSecret, encryptedHeaders, encryptedPrevious];
  return 1_000 + 2 * (url.length + (filter?.length ?? 0)) + sum(sealed.map((one) => one?.length ?? 0));
}

const sum = (sizes: readonly number[]): number => sizes.reduce((all, size) => all + size, 0);

function foundOf({
  snapshot: _snapshot,
  readAtMs: _readAtMs,
  userId: id,
  name,
  email,
  isAdmin,
  encryptedSecret,
  encryptedPrevious,
  encryptedHeaders,
  ...subscription
}: FoundRow & Partial<KnownAt>): Found {
  const signing = { encryptedSecret, encryptedPrevious, encryptedHeaders };
  return { ...subscription, signing, user: { id, name, email, isAdmin, claims: noClaims } };
}

function candidateQueries(
  events: readonly MatchedEvent[],
  selectors: ReadonlyMap<string, ReaderSelector>,
): readonly CandidateQuery[] {
  return [...selectors].flatMap(([resource, selector]) => {
    const own = events.filter((event) => event.resource === resource);
    return [...new Set(own.map(({ event }) => event))].flatMap((trigger) => {
      const places = own.flatMap(({ event }, place) => (event === trigger ? [place] : []));
      // The name `service` means operational events here, which subscriptions to all resources do
      // not get.
      const names = resource === serviceResource ? [resource, everyResource] : [resource];
      return selector.groupsOf(places).flatMap((group) => {
        const userId = group.kind === "owner" ? group.userId : null;
        const email = group.kind === "email" ? group.email : null;
        return names.map((name): CandidateQuery => [name, trigger, group.kind, userId, email]);
      });
    });
  });
}
