import type { Eligibility } from "./eligibility.ts";
import type { Subscriber } from "./subscriber.ts";
import type { MatchedEvent } from "./match.ts";
import { everyResource } from "./subscription.ts";

/** A subscription that is off, and is still to get deliveries. */
export type OffSubscriber = Subscriber & { readonly resource: string; readonly events: readonly string[] };

/** The columns of `svc.possible_subscribers`, of subscriptions that are off. */
export const offText = (holdForMs: string, resources: string): string => `
  SELECT subscription.id AS subscription_id, subscription.resource, subscription.events, subscription.url,
    subscription.encrypted_secret, subscriber.id AS user_id, subscriber.name, subscriber.email, subscriber.is_admin,
    subscription.filter::text AS filter, subscription.encrypted_headers,
    CASE WHEN subscription.previous_until > now() THEN subscription.encrypted_previous END AS encrypted_previous,
    subscription.rate_limit
  FROM svc.subscriptions AS subscription JOIN svc.users AS subscriber ON subscriber.id = subscription.user_id
  WHERE NOT subscription.is_active AND subscription.disabled_at > now() - ${holdForMs} * interval '1 millisecond'
    AND subscription.resource = ANY(${resources}::text[] || '*'::text) AND subscriber.disabled_at IS NULL
  ORDER BY subscription.id`;

/** Most pairs that are judged together. */
const mostPairs = 10_000;

/**
 * Returns which of the subscriptions that are off would get each event, in the events' order. Each
 * pair is judged for itself: the way by circles knows active subscriptions only.
 */
export async function matchOff<S extends OffSubscriber>({
  events,
  off,
  eligibility,
}: {
  readonly events: readonly MatchedEvent[];
  readonly off: readonly S[];
  readonly eligibility: Pick<Eligibility, "judge">;
}): Promise<readonly (readonly S[])[]> {
  const answers: S[][] = events.map(() => []);
  const pairs = events.flatMap((event, index) =>
    off.filter((subscriber) => wants(subscriber, event)).map((subscriber) => ({ event, index, subscriber })),
  );
  for (let start = 0; start < pairs.length; start += mostPairs) {
    const portion = pairs.slice(start, start + mostPairs);
    const verdicts = await eligibility.judge(
      portion.map(({ event, subscriber }) => ({ event, user: subscriber.user })),
    );
    portion.forEach(({ index, subscriber }, place) => {
      // What cannot be judged now is judged again before its attempt.
      if (verdicts[place] !== false) answers[index]?.push(subscriber);
    });
  }
  return answers;
}

function wants({ resource, events }: OffSubscriber, event: MatchedEvent): boolean {
  return (resource === event.resource || resource === everyResource) && events.includes(event.event);
}
