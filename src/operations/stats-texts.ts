/** Most rows that a count reads. A count that reaches this means at least as many. */
export const countLimit = 1_000;
const mostReceivers = 20;
/** Most waiting deliveries of a receiver that are counted. */
export const receiverCountLimit = 100;

/**
 * Reads the figures of a user, or of `everybody` (deliveries/figures.ts). At most one row for each
 * minute of two hours and each hour of eight days.
 */
export const figuresText = `
  SELECT width, since, changes, deliveries, failures FROM svc.figures
  WHERE user_id = $1 AND since > now() - interval '170 hours'`;

const some = (rows: string, limit: number): string =>
  `(SELECT count(*) FROM (SELECT FROM ${rows} LIMIT ${limit}) AS counted)::int`;

/**
 * Returns the time since which the oldest delivery waits: it is due since then, or was attempted
 * last and waits for a slot. Retries that are due later do not wait.
 */
const waitingSince = (firstDue: string, firstParked: string): string =>
  `least((${firstDue}), (SELECT updated_at FROM svc.deliveries WHERE id = (${firstParked})))`;

/** Counts the waiting work of all users. Each part reads an index, up to its limit. */
export const backlogOfAllText = `
  WITH parked AS MATERIALIZED (
    SELECT delivery_id FROM svc.delivery_queue WHERE due_at IS NULL ORDER BY subscription_id, delivery_id LIMIT ${countLimit}
  )
  SELECT now() AS now,
    ${some("svc.outbox ORDER BY event_id", countLimit)} AS events,
    (SELECT occurred_at FROM svc.events WHERE id = (SELECT event_id FROM svc.outbox ORDER BY event_id LIMIT 1)) AS "oldestEventAt",
    ${some("svc.delivery_queue WHERE due_at <= now() ORDER BY due_at", countLimit)}
      + (SELECT count(*) FROM parked)::int AS deliveries,
    ${some("svc.delivery_queue WHERE due_at > now() ORDER BY due_at", countLimit)} AS scheduled,
    ${waitingSince(
      "SELECT due_at FROM svc.delivery_queue WHERE due_at <= now() ORDER BY due_at LIMIT 1",
      "SELECT min(delivery_id) FROM parked",
    )} AS "oldestDeliveryAt",
    ${some("svc.deliveries WHERE held_at IS NOT NULL ORDER BY id", countLimit)} AS held`;

/**
 * Counts the waiting work of one user. Leaves out events that are not fanned out, because no index
 * has them by owner.
 */
export const backlogOfUserText = `
  WITH own AS MATERIALIZED (
    SELECT delivery_id, due_at FROM svc.delivery_queue WHERE user_id = $1 ORDER BY delivery_id LIMIT ${countLimit}
  )
  SELECT now() AS now, NULL::int AS events, NULL::timestamptz AS "oldestEventAt",
    (SELECT count(*) FROM own WHERE due_at IS NULL OR due_at <= now())::int AS deliveries,
    (SELECT count(*) FROM own WHERE due_at > now())::int AS scheduled,
    ${waitingSince(
      "SELECT min(due_at) FROM own WHERE due_at <= now()",
      "SELECT min(delivery_id) FROM own WHERE due_at IS NULL",
    )} AS "oldestDeliveryAt",
    ${some("svc.deliveries WHERE user_id = $1 AND held_at IS NOT NULL ORDER BY id", countLimit)} AS held`;

/**
 * Lists receivers that fail, are off or wait. `failing`, `off` and `parked` each read a bounded
 * number of rows. A receiver that was switched off for failing keeps its time. The newest are read
 * first, because receivers that are on have failed for a shorter time. OFFSET 0 makes PostgreSQL
 * look up one row by its key for each, whatever the planner expects.
 */
const receiversText = (failing: string, off: string, parked: string): string => `
  WITH RECURSIVE failing AS MATERIALIZED (${failing}
  ), off AS MATERIALIZED (${off}
  ), ${parked}, named AS (
    SELECT id, since, 'failing' AS state, 0 AS rank FROM failing
    UNION ALL
    SELECT id, since, 'off', CASE reason WHEN 'owner' THEN 3 ELSE 1 END FROM off
    UNION ALL
    SELECT id, NULL, 'waiting', 2 FROM parked WHERE id NOT IN (SELECT id FROM failing UNION ALL SELECT id FROM off)
  ), worst AS MATERIALIZED (
    SELECT id, since, state, rank FROM named ORDER BY rank, since NULLS LAST, id LIMIT ${mostReceivers}
  )
  SELECT worst.id AS "webhookId", worst.state, subscription.user_id AS "userId", subscription.url, subscription.resource,
    subscription.disabled_reason AS "disabledReason", health.next_slot_at > now() AS "isLimited",
    coalesce(worst.since, (SELECT updated_at FROM svc.deliveries WHERE id = (
      SELECT delivery_id FROM svc.delivery_queue WHERE subscription_id = worst.id AND due_at IS NULL
      ORDER BY subscription_id, delivery_id LIMIT 1)), now()) AS since,
    (SELECT last_error FROM svc.deliveries WHERE id = ANY(ARRAY(
      SELECT delivery_id FROM svc.delivery_queue WHERE subscription_id = worst.id ORDER BY delivery_id LIMIT 5))
      AND last_error IS NOT NULL LIMIT 1) AS "lastError",
    ${some("svc.delivery_queue WHERE subscription_id = worst.id ORDER BY delivery_id", receiverCountLimit)}
      + ${some("svc.deliveries WHERE subscription_id = worst.id AND held_at IS NOT NULL ORDER BY id", receiverCountLimit)} AS waiting
  FROM worst
  JOIN LATERAL (SELECT * FROM svc.subscriptions WHERE id = worst.id OFFSET 0) AS subscription ON true
  LEFT JOIN LATERAL (SELECT * FROM svc.subscription_state WHERE subscription_id = worst.id OFFSET 0) AS health ON true
  ORDER BY worst.rank, since`;

/** Lists the receivers of all users. */
export const receiversOfAllText = receiversText(
  `
    SELECT id, since FROM (
      SELECT subscription_id AS id, failing_since AS since FROM svc.subscription_state
      WHERE failing_since IS NOT NULL ORDER BY failing_since DESC LIMIT 60) AS newest
    WHERE (SELECT is_active FROM svc.subscriptions AS subscription WHERE subscription.id = newest.id)`,
  `
    SELECT id, disabled_at AS since, disabled_reason AS reason FROM svc.subscriptions WHERE NOT is_active
    ORDER BY disabled_at DESC LIMIT 40`,
  `stepped AS (
    (SELECT subscription_id AS id, 1 AS step FROM svc.delivery_queue WHERE due_at IS NULL ORDER BY subscription_id, delivery_id LIMIT 1)
    UNION ALL
    SELECT (SELECT next.subscription_id FROM svc.delivery_queue AS next
      WHERE next.due_at IS NULL AND next.subscription_id > stepped.id ORDER BY next.subscription_id, next.delivery_id LIMIT 1), step + 1
    FROM stepped WHERE stepped.id IS NOT NULL AND step < 40
  ), parked AS (SELECT id FROM stepped WHERE id IS NOT NULL)`,
);

export const receiversOfUserText = receiversText(
  `
    SELECT own.id, failing_since AS since FROM (
      SELECT id, is_active FROM svc.subscriptions WHERE user_id = $1 ORDER BY user_id LIMIT ${countLimit}) AS own
    CROSS JOIN LATERAL (
      SELECT failing_since FROM svc.subscription_state WHERE subscription_id = own.id OFFSET 0) AS health
    WHERE own.is_active AND failing_since IS NOT NULL`,
  `
    SELECT id, disabled_at AS since, disabled_reason AS reason FROM (
      SELECT id, is_active, disabled_at, disabled_reason FROM svc.subscriptions WHERE user_id = $1
      ORDER BY user_id LIMIT ${countLimit}) AS own
    WHERE NOT is_active`,
  `parked AS MATERIALIZED (
    SELECT DISTINCT subscription_id AS id FROM (
      SELECT subscription_id, due_at FROM svc.delivery_queue WHERE user_id = $1 ORDER BY delivery_id LIMIT ${countLimit}) AS own
    WHERE due_at IS NULL
  )`,
);
