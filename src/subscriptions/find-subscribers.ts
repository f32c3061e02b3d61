import type { Sql } from "../db/sql.ts";
import { noClaims, type Caller } from "../kit/caller.ts";
import type { Audience, Circle, Eligibility } from "./eligibility.ts";
import { filterAnswers, type FilteredEvent } from "./filter-answers.ts";
import type { WebhookFilters } from "./filters.ts";
import { groupBy } from "../kit/group-by.ts";
import type { SealedSigning } from "./signing.ts";
import { matchEvents, type Candidate, type MatchedEvent } from "./match.ts";

/** A subscription that gets an event, with everything that an attempt needs of it. */
export interface Subscriber {
  readonly subscriptionId: number;
  readonly url: string;
  readonly signing: SealedSigning;
  /** Attempts a second; null: no limit. */
  readonly rateLimit: number | null;
  /** Owner of the subscription. */
  readonly user: Caller;
}

type Found = Candidate & Subscriber & { readonly filter: string | null };
type FoundRow = Omit<Found, "user" | "signing"> &
  Omit<Caller, "id"> &
  SealedSigning & { readonly userId: number };

const findText = `
  SELECT subscription_id AS "subscriptionId", resource, events, url, encrypted_secret AS "encryptedSecret",
    user_id AS "userId", name, email, is_admin AS "isAdmin",
    encrypted_headers AS "encryptedHeaders", encrypted_previous AS "encryptedPrevious", rate_limit AS "rateLimit", filter
  FROM svc.possible_subscribers($1, $2, $3, $4, $5)`;

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
}: {
  readonly sql: Sql;
  readonly eligibility: Pick<Eligibility, "circleOf">;
  readonly filters: Pick<WebhookFilters, "passes">;
}): (events: readonly (MatchedEvent & FilteredEvent)[]) => Promise<readonly (readonly Subscriber[])[]> {
  return async (events) => {
    const circles = new Map<string, Circle>();
    for (const [resource, own] of groupBy(events, (event) => event.resource))
      circles.set(resource, await eligibility.circleOf(resource, own));
    const questions = questionsOf(events, circles);
    if (questions.length === 0) return events.map(() => []);
    const columns = [0, 1, 2, 3, 4].map((column) => questions.map((question) => question[column]));
    const rows = await sql<FoundRow>(findText, columns);
    const matched = matchEvents({ events, candidates: rows.map(foundOf), circles });
    return filterAnswers(events, matched, filters);
  };
}

function foundOf({
  userId: id,
  name,
  email,
  isAdmin,
  encryptedSecret,
  encryptedPrevious,
  encryptedHeaders,
  ...subscription
}: FoundRow): Found {
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
      return circle.audiencesOf(places).map((audience): Question => {
        const userId = audience.kind === "owner" ? audience.userId : null;
        const email = audience.kind === "email" ? audience.email : null;
        return [resource, trigger, audience.kind, userId, email];
      });
    });
  });
}
