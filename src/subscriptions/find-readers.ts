import { quoteTable } from "../db/names.ts";
import type { Sql } from "../db/sql.ts";
import type { Definition } from "../mapping/definition.ts";
import type { Alternative, UserPlace } from "../querying/alternatives.ts";
import { columnText, conditionText, createParameters, type Parameters } from "../querying/condition-text.ts";
import type { Condition } from "../querying/condition.ts";
import { bindToUsers } from "../querying/user-values.ts";
import { snapshotRow } from "./snapshot-row-sql.ts";

/** Readers of an event: ids of users, or every user. */
export type EventReaders = readonly number[] | "everybody";

/** The events of one resource whose readers are to be found. */
interface ReaderQuery {
  readonly sql: Sql;
  readonly definition: Definition;
  /** Row ids, as decimal strings. */
  readonly eventIds: readonly string[];
}

interface FoundReader {
  readonly eventId: string;
  /** Null for every user. */
  readonly userId: number | null;
}

/**
 * With at most this many subscriptions to a resource, their users are judged one by one. A record
 * may name a million users.
 */
const mostJudgedFirst = 20;
/** Most pairs of an event and a user in one statement: each may look up related rows. */
const mostPairs = 20_000;

/**
 * SQL condition of a subscription or user that was switched off recently. It counts as on, because
 * it may be on again when the subscriptions are read. Otherwise, its events would be lost.
 */
const offOfLate = "disabled_at > now() - interval '1 hour'";

/**
 * Finds the users who read events, and have a subscription that is active or was within the last
 * hour. The rule `access.read` is applied to the snapshot, with the related rows as they are now.
 *
 * One statement goes from the snapshots to the users that they lead to, and reads only these users.
 * Its cost does not depend on the number of subscriptions. Alternatives that must judge each user
 * take one more statement for every 20,000 pairs.
 */
export async function findReaders(
  query: ReaderQuery,
  alternatives: readonly Alternative[],
): Promise<ReadonlyMap<string, EventReaders>> {
  const readers = new Map<string, Set<number> | "everybody">();
  const note = ({ eventId, userId }: FoundReader): void => {
    const known = readers.get(eventId) ?? new Set<number>();
    if (userId === null) readers.set(eventId, "everybody");
    else if (known !== "everybody") readers.set(eventId, known.add(userId));
  };
  const direct = alternatives.filter(({ kind }) => kind !== "judged");
  if (direct.length > 0) (await findDirectReaders(query, direct)).forEach(note);
  const judged = alternatives.filter(({ kind }) => kind === "judged").map(({ when }) => when);
  if (judged.length > 0) {
    const eventIds = query.eventIds.filter((id) => readers.get(id) !== "everybody");
    for await (const found of findJudgedReaders({ ...query, eventIds }, { kind: "any", of: judged }))
      found.forEach(note);
  }
  return new Map([...readers].map(([id, found]) => [id, found === "everybody" ? found : [...found]]));
}

async function findDirectReaders(
  { sql, definition, eventIds }: ReaderQuery,
  alternatives: readonly Alternative[],
): Promise<readonly FoundReader[]> {
  const parameters = createParameters();
  const events = parameters.add(eventIds);
  const resource = parameters.add(definition.name);
  const places = alternatives.filter((one) => one.kind === "found");
  const branches = alternatives.map((one) =>
    one.kind === "found"
      ? placeText(one.place, one.when, resource, parameters)
      : `SELECT NULL::int AS user_id WHERE ${conditionText(one.when, "t", parameters)}`,
  );
  if (places.length > 0) {
    const when = bindToUsers({ kind: "any", of: places.map((one) => one.when) });
    const few = "(SELECT DISTINCT user_id AS id FROM sample) AS given";
    branches.push(
      `SELECT u.id FROM ${few} ${userText("id = given.id", resource)}
       WHERE (SELECT are_few FROM size) AND (${conditionText(when, "t", parameters)})`,
    );
  }
  const conditions = alternatives.map(({ when }) => when);
  return sql<FoundReader>(
    `WITH sample AS MATERIALIZED (
       (SELECT user_id FROM svc.subscriptions WHERE resource = ${resource} AND is_active ORDER BY user_id LIMIT ${mostJudgedFirst + 1})
       UNION ALL
       (SELECT user_id FROM svc.subscriptions WHERE resource = '*' AND is_active ORDER BY user_id LIMIT ${mostJudgedFirst + 1})
       UNION ALL
       (${offText(resource)} ORDER BY disabled_at LIMIT ${mostJudgedFirst + 1})
     ), size AS MATERIALIZED (SELECT count(*) <= ${mostJudgedFirst} AS are_few FROM sample)
     SELECT e.id AS "eventId", reader.user_id AS "userId"
     FROM svc.events AS e
     CROSS JOIN LATERAL ${snapshotRow(definition, conditions)}
     CROSS JOIN LATERAL (${branches.join(" UNION ")}) AS reader (user_id)
     WHERE e.id = ANY(${events}::bigint[])`,
    parameters.values,
  );
}

/**
 * Returns the SQL query that goes from the row `t` to its users, and keeps those for whom `when`
 * holds.
 */
function placeText(
  { links, field, by }: UserPlace,
  when: Condition,
  resource: string,
  parameters: Parameters,
): string {
  let alias = "t";
  const steps = links.map(({ target, from, to }): string => {
    const next = parameters.alias();
    const step = `${quoteTable(target.table)} AS ${next} ON ${columnText(next, to)} = ${columnText(alias, from)}`;
    alias = next;
    return step;
  });
  const column = columnText(alias, field);
  const value = field.isList ? `unnest(${column})` : column;
  // Without OFFSET 0, the planner may read all rows in the order of `named`, to make them distinct.
  const text = `SELECT ${value} AS named FROM (SELECT) AS one ${steps.map((step) => `JOIN ${step}`).join(" ")} OFFSET 0`;
  return `SELECT u.id FROM (SELECT DISTINCT named FROM (${text}) AS every OFFSET 0) AS given ${userText(sameUser(field.type, by), resource)}
    WHERE NOT (SELECT are_few FROM size) AND (${conditionText(bindToUsers(when), "t", parameters)})`;
}

/**
 * Returns the SQL condition that a value names a user. A text that is no id, or too large, names
 * none.
 */
function sameUser(type: string, by: UserPlace["by"]): string {
  if (by === "email") return "lower(email) = lower(given.named)";
  if (type !== "String") return "id = given.named";
  return "id = CASE WHEN given.named ~ '^[1-9][0-9]{0,9}$' THEN given.named::bigint END";
}

// OFFSET 0 keeps the join order: one look-up for each named user, whatever the statistics say. With
// LIMIT 1, the planner may expect to find the row soon, and read all subscriptions.
function userText(condition: string, resource: string): string {
  return `CROSS JOIN LATERAL (
    SELECT id, email FROM svc.users WHERE ${condition} AND (disabled_at IS NULL OR ${offOfLate}) OFFSET 0
  ) AS u CROSS JOIN LATERAL (
    SELECT user_id FROM svc.subscriptions AS subscription
    WHERE subscription.resource IN (${resource}, '*') AND subscription.user_id = u.id AND is_active AND e.trigger = ANY(events)
    UNION ALL
    ${offText(resource)} AND user_id = u.id AND e.trigger = ANY(events)
    OFFSET 0
  ) AS wanted`;
}

/** Selects the users of subscriptions that were switched off recently. */
function offText(resource: string): string {
  return `SELECT user_id FROM svc.subscriptions WHERE NOT is_active AND ${offOfLate} AND resource IN (${resource}, '*')`;
}

/** Judges each user with a subscription, with up to 20,000 pairs in one statement. */
async function* findJudgedReaders(
  { sql, definition, eventIds }: ReaderQuery,
  when: Condition,
): AsyncGenerator<readonly FoundReader[]> {
  const usersAtOnce = Math.max(1, Math.floor(mostPairs / Math.max(1, eventIds.length)));
  for (let after = 0; eventIds.length > 0;) {
    const parameters = createParameters();
    const events = parameters.add(eventIds);
    const resource = parameters.add(definition.name);
    const bounds = { after: parameters.add(after), take: parameters.add(usersAtOnce) };
    const condition = conditionText(bindToUsers(when), "t", parameters);
    const rows = await sql<{ eventId: string | null; userId: number; last: number | null; count: number }>(
      `WITH portion AS MATERIALIZED (
         SELECT id FROM (
           ${subscribedText(resource, bounds)} UNION ${subscribedText("'*'", bounds)}
           UNION ${offText(resource)} AND user_id > ${bounds.after}::int
         ) AS subscribed ORDER BY id LIMIT ${bounds.take}::int
       )
       SELECT bounds.last, bounds.count, reader."eventId", reader."userId"
       FROM (SELECT max(id) AS last, count(*)::int AS count FROM portion) AS bounds
       LEFT JOIN LATERAL (
         SELECT e.id AS "eventId", u.id AS "userId"
         FROM svc.events AS e
         CROSS JOIN LATERAL ${snapshotRow(definition, [when])}
         CROSS JOIN portion AS given ${userText("id = given.id", resource)}
         WHERE e.id = ANY(${events}::bigint[]) AND (${condition})
       ) AS reader ON true`,
      parameters.values,
    );
    yield rows.flatMap(({ eventId, userId }) => (eventId === null ? [] : [{ eventId, userId }]));
    const [first] = rows;
    if (first === undefined || first.last === null || first.count < usersAtOnce) return;
    after = first.last;
  }
}

function subscribedText(
  resource: string,
  { after, take }: { readonly after: string; readonly take: string },
): string {
  return `(SELECT DISTINCT user_id AS id FROM svc.subscriptions
             WHERE resource = ${resource} AND is_active AND user_id > ${after}::int
             ORDER BY user_id LIMIT ${take}::int)`;
}
