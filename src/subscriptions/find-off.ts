import type { Eligibility } from "./eligibility.ts";
import type { Candidate, MatchedEvent } from "./match.ts";
import { everyResource } from "./subscription.ts";

/**
 * SQL expression of the time since which `subscription`, of the user `subscriber`, is off. Null
 * while it is on.
 */
export const offSince = "least(subscription.disabled_at, subscriber.disabled_at)";

/**
 * Selects subscriptions that are off, with the columns of `svc.possible_subscribers`. Their owner
 * has paused them, a dispatcher has switched them off, or their user is disabled. OFFSET 0 keeps
 * the join order, and the array reads subscriptions at most once, whatever the statistics say.
 *
 * @param users Selects the ids of their users; undefined for all users.
 */
export const offText = (holdForMs: string, resources: string, users?: string): string => `
  ${withUsersText(`
    SELECT id FROM svc.subscriptions WHERE NOT is_active AND disabled_at > ${endOf(holdForMs)} ${amongText("user_id", users)}
    UNION
    SELECT id FROM svc.subscriptions
    WHERE user_id = ANY(ARRAY(SELECT id FROM svc.users WHERE disabled_at > ${endOf(holdForMs)} ${amongText("id", users)}))`)}
  WHERE ${offSince} > ${endOf(holdForMs)} AND subscription.resource = ANY(${resources}::text[] || '*'::text)
  ORDER BY subscription.id`;

const amongText = (column: string, users: string | undefined): string =>
  users === undefined ? "" : `AND ${column} = ANY(ARRAY(${users}))`;

/** Selects the subscriptions with these ids, whether they are off or not. */
export const byIdText = (ids: string): string => withUsersText(`SELECT unnest(${ids}::int[]) AS id`);

const withUsersText = (ids: string): string => `
  SELECT subscription.id AS subscription_id, subscription.resource, subscription.events, subscription.url,
    subscription.encrypted_secret, subscriber.id AS user_id, subscriber.name, subscriber.email, subscriber.is_admin,
    subscription.filter::text AS filter, subscription.encrypted_headers,
    CASE WHEN subscription.previous_until > now() THEN subscription.encrypted_previous END AS encrypted_previous,
    subscription.rate_limit
  FROM (${ids}) AS given
  CROSS JOIN LATERAL (SELECT * FROM svc.subscriptions WHERE id = given.id OFFSET 0) AS subscription
  CROSS JOIN LATERAL (SELECT * FROM svc.users WHERE id = subscription.user_id OFFSET 0) AS subscriber`;

/** SQL expression of a time: a subscription that is off since before it gets no more deliveries. */
const endOf = (holdForMs: string): string => `now() - ${holdForMs} * interval '1 millisecond'`;

/** Most pairs that are judged together, so that they take less than `judgeLimitMs`. */
const mostPairs = 2_000;

/**
 * Returns the subscriptions that would get each event if they were on, in the events' order. Each
 * pair is judged separately, because a `ReaderSelector` only knows active subscriptions.
 */
export async function matchOff<C extends Candidate>(
  events: readonly MatchedEvent[],
  off: readonly C[],
  eligibility: Pick<Eligibility, "judge">,
): Promise<readonly (readonly C[])[]> {
  const answers: C[][] = events.map(() => []);
  const pairs = events.flatMap((event, index) =>
    off
      .filter((subscriber) => matchesEvent(subscriber, event))
      .map((subscriber) => ({ event, index, subscriber })),
  );
  for (let start = 0; start < pairs.length; start += mostPairs) {
    const portion = pairs.slice(start, start + mostPairs);
    const verdicts = await eligibility.judge(
      portion.map(({ event, subscriber }) => ({ event, user: subscriber.user })),
    );
    // The error leaves the event in the outbox, and it is tried again. A held delivery would show
    // the event to a subscriber who may not read it.
    const unknown = portion.find((_, place) => verdicts[place] === undefined);
    if (unknown !== undefined)
      throw new Error(`Who may read an event of ${unknown.event.resource} cannot be decided now.`);
    portion.forEach(({ index, subscriber }, place) => {
      if (verdicts[place] === true) answers[index]?.push(subscriber);
    });
  }
  return answers;
}

function matchesEvent({ resource, events }: Candidate, event: MatchedEvent): boolean {
  return (resource === event.resource || resource === everyResource) && events.includes(event.event);
}
