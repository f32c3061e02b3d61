import type { Sql } from "../db/sql.ts";
import { serviceResource } from "../events/event.ts";
import { noClaims, type Caller } from "../kit/caller.ts";
import type { Audience, Circle, Eligibility } from "./eligibility.ts";
import type { FilteredEvent } from "./filter-answers.ts";
import type { WebhookFilters } from "./filters.ts";
import { groupBy } from "../kit/group-by.ts";
import { matchOff, offText } from "./find-off.ts";
import type { SealedSigning } from "./signing.ts";
import { matchEvents, type Candidate, type MatchedEvent } from "./match.ts";
import { everyResource } from "./subscription.ts";

/** A subscription that gets an event, with everything that an attempt needs of it. */
export interface Subscriber {
  readonly subscriptionId: number;
  readonly url: string;
  readonly signing: SealedSigning;
  /** Attempts a second; null: no limit. */
  readonly rateLimit: number | null;
  /** Owner of the subscription. */
  readonly user: Caller;
  /** False: its deliveries are held. */
  readonly isActive: boolean;
}

type Found = Candidate & Subscriber & { readonly filter: string | null };
type FoundRow = Omit<Found, "user" | "signing"> &
  Omit<Caller, "id"> &
  SealedSigning & { readonly userId: number };

const columns = `subscription_id AS "subscriptionId", resource, events, url, encrypted_secret AS "encryptedSecret",
    user_id AS "userId", name, email, is_admin AS "isAdmin",
    encrypted_headers AS "encryptedHeaders", encrypted_previous AS "encryptedPrevious", rate_limit AS "rateLimit", filter`;
// One statement, and so one snapshot: with two, a subscription that is switched on or off between
// them is in neither, and its event is lost.
const findText = `
  SELECT ${columns}, true AS "isActive" FROM svc.possible_subscribers($1, $2, $3, $4, $5)
  UNION ALL
  SELECT ${columns}, false FROM (${offText("$6", "$7")}) AS off`;

/**
 * A row of the arguments of `svc.possible_subscribers`: a trigger of a resource, and an audience.
 */
type Question = readonly [
  resource: string,
  trigger: string,
  kind: Audience["kind"],
  userId: number | null,
  email: string | null,
];

/**
 * Finds the subscriptions that get each event of a batch, in the events' order and each answer by
 * id. One statement narrows: it goes from the distinct owners, readers and admins to their
 * subscriptions. That takes 3 to 10 ms for 200 users, however many users subscribe to the resource.
 * `matchEvents` then decides. A resource with a filter in `access.read` takes one more, see
 * `findReaders`.
 *
 * Where code decides who is an admin, and where everyone reads, the statement reads all active
 * subscriptions to the triggers. That takes 1 to 3 s for 100,000.
 */
export function createSubscriberFinder({
  sql,
  eligibility,
  filters,
  holdForMs,
}: {
  readonly sql: Sql;
  readonly eligibility: Pick<Eligibility, "circleOf" | "judge">;
  readonly filters: Pick<WebhookFilters, "passing">;
  /** How long a subscription that is off still gets deliveries. */
  readonly holdForMs: number;
}): (events: readonly (MatchedEvent & FilteredEvent)[]) => Promise<readonly (readonly Subscriber[])[]> {
  return async (events) => {
    if (events.length === 0) return [];
    const circles = new Map<string, Circle>();
    for (const [resource, own] of groupBy(events, (event) => event.resource))
      circles.set(resource, await eligibility.circleOf(resource, own));
    const questions = questionsOf(events, circles);
    const asked = [0, 1, 2, 3, 4].map((column) => questions.map((question) => question[column]));
    const rows = await sql<FoundRow & Record<string, unknown>>(findText, [
      ...asked,
      holdForMs,
      [...circles.keys()],
    ]);
    const found = rows.map(foundOf);
    const active = matchEvents({ events, candidates: found.filter(({ isActive }) => isActive), circles });
    const off = found.filter(({ isActive }) => !isActive);
    if (off.length === 0) return filters.passing(events, active);
    const held = await matchOff({ events, off, eligibility });
    const matched = active.map((own, index) => [...own, ...(held[index] ?? [])]);
    return filters.passing(events, matched);
  };
}

function foundOf(row: FoundRow): Found {
  const {
    userId: id,
    name,
    email,
    isAdmin,
    encryptedSecret,
    encryptedPrevious,
    encryptedHeaders,
    ...subscription
  } = row;
  const signing = { encryptedSecret, encryptedPrevious, encryptedHeaders };
  return { ...subscription, signing, user: { id, name, email, isAdmin, claims: noClaims } };
}

function questionsOf(
  events: readonly MatchedEvent[],
  circles: ReadonlyMap<string, Circle>,
): readonly Question[] {
  return [...circles].flatMap(([resource, circle]) => {
    const own = events.filter((event) => event.resource === resource);
    return [...new Set(own.map(({ event }) => event))].flatMap((trigger) => {
      const places = own.flatMap(({ event }, place) => (event === trigger ? [place] : []));
      // The function takes `service` for operational events, which those to all do not get.
      const names = resource === serviceResource ? [resource, everyResource] : [resource];
      return circle.audiencesOf(places).flatMap((audience) => {
        const userId = audience.kind === "owner" ? audience.userId : null;
        const email = audience.kind === "email" ? audience.email : null;
        return names.map((name): Question => [name, trigger, audience.kind, userId, email]);
      });
    });
  });
}
