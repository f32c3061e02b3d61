import { idOf } from "../kit/ids.ts";
import type { Sql } from "../db/sql.ts";
import { conditionText, createParameters } from "../querying/condition-text.ts";
import type { Condition } from "../querying/condition.ts";
import { fixedShape } from "../querying/fixed-shape.ts";
import { orderText, type OrderItem } from "../querying/order.ts";
import { disabledReasons, type OwnSubscription } from "./subscription.ts";

/**
 * Fields that lists can filter and sort by. A user has few subscriptions, so no filter or sort
 * needs its own index.
 */
export const subscriptionShape = fixedShape(
  [
    { name: "id", type: "Int" },
    { name: "user_id", type: "Int" },
    { name: "url", type: "String" },
    { name: "resource", type: "String" },
    { name: "events", type: "String", isList: true },
    { name: "filter", type: "Json", isOptional: true, fault: "a condition" },
    { name: "headers", type: "Json", fault: "an object" },
    { name: "rate_limit", type: "Float", isOptional: true },
    { name: "is_active", type: "Boolean" },
    { name: "disabled_at", type: "DateTime", isOptional: true },
    { name: "disabled_reason", type: "Enum", isOptional: true, values: disabledReasons },
    { name: "failing_since", type: "DateTime", isOptional: true },
    { name: "last_success_at", type: "DateTime", isOptional: true },
    { name: "last_attempt_at", type: "DateTime", isOptional: true },
    { name: "description", type: "String", isOptional: true },
    { name: "masked_secret", type: "String", fault: "a secret" },
    { name: "previous_secret_until", type: "DateTime", isOptional: true },
    { name: "created_at", type: "DateTime" },
    { name: "updated_at", type: "DateTime" },
  ],
  { own: { user_id: userFault } },
);

function userFault(text: string): string | undefined {
  const isUser = text === "*" || idOf(text) !== undefined;
  return isUser ? undefined : "The user id field must be an integer, or * for all users.";
}

/**
 * Selects all subscriptions. A subscription of a disabled user is off for the reason `user`, which
 * its own row lacks.
 */
const all = `SELECT
    own.id, own.user_id, own.url, own.resource, own.events, own.filter, own.header_names, own.rate_limit,
    state.failing_since, state.last_success_at, state.last_attempt_at, own.description, own.secret_hint,
    CASE WHEN own.previous_until > now() THEN own.previous_until END AS previous_secret_until, own.created_at, own.updated_at,
    own.is_active AND subscriber.disabled_at IS NULL AS is_active,
    coalesce(own.disabled_at, subscriber.disabled_at) AS disabled_at,
    coalesce(own.disabled_reason, CASE WHEN subscriber.disabled_at IS NOT NULL THEN 'user' END) AS disabled_reason
  FROM svc.subscriptions AS own LEFT JOIN svc.subscription_state AS state ON state.subscription_id = own.id
    JOIN svc.users AS subscriber ON subscriber.id = own.user_id`;

/** Columns of `t`, renamed to the keys of `OwnSubscription`. */
const named = `
  t.id, t.user_id AS "userId", t.url, t.resource, t.events, t.filter, t.header_names AS "headerNames", t.rate_limit AS "rateLimit",
  t.is_active AS "isActive", t.disabled_at AS "disabledAt", t.disabled_reason AS "disabledReason", t.failing_since AS "failingSince",
  t.last_success_at AS "lastSuccessAt", t.last_attempt_at AS "lastAttemptAt", t.description, t.secret_hint AS "secretHint",
  t.previous_secret_until AS "previousUntil", t.created_at AS "createdAt", t.updated_at AS "updatedAt"`;

const findText = `SELECT ${named} FROM (${all} WHERE own.id = $1 AND own.user_id = coalesce($2, own.user_id)) AS t`;

/** The owner of the subscriptions to read: a user's id, or every user. */
export type OwnerScope = number | "everybody";

/** Returns a subscription; undefined when there is none, or when it is another user's. */
export async function findSubscription(
  sql: Sql,
  id: number,
  owner: OwnerScope,
): Promise<OwnSubscription | undefined> {
  const [found] = await sql<OwnSubscription>(findText, [id, owner === "everybody" ? null : owner]);
  return found;
}

/** The subscriptions of a list. */
interface Listed {
  readonly filter: Condition;
  readonly sort: readonly OrderItem[] | undefined;
  readonly limit: number;
}

/**
 * Returns a user's subscriptions that match the filter, in the given order or newest first. With
 * `everybody`, returns those of all users.
 *
 * @param sql Reads by index and without statement names (`createIndexSql`), because filters make
 *   many different texts.
 */
export async function findSubscriptions(
  sql: Sql,
  owner: OwnerScope,
  listed: Listed,
): Promise<readonly OwnSubscription[]> {
  return find<OwnSubscription>(sql, owner, { ...listed, columns: named });
}

/** Returns the ids of the same subscriptions. Those of a page are then read alone. */
export async function findSubscriptionIds(
  sql: Sql,
  owner: OwnerScope,
  listed: Listed,
): Promise<readonly number[]> {
  return (await find<{ readonly id: number }>(sql, owner, { ...listed, columns: "t.id" })).map(
    ({ id }) => id,
  );
}

async function find<Found extends Readonly<Record<keyof Found, unknown>>>(
  sql: Sql,
  owner: OwnerScope,
  { columns, filter, sort, limit }: Listed & { readonly columns: string },
): Promise<readonly Found[]> {
  const parameters = createParameters();
  // Without OFFSET 0 the planner may read all users' subscriptions in the order of ids, to save the
  // sort.
  const own = owner === "everybody" ? all : `${all} WHERE own.user_id = ${parameters.add(owner)} OFFSET 0`;
  const where = conditionText(filter, "t", parameters);
  const order = sort === undefined ? "" : `${orderText(sort, () => "t")}, `;
  return sql<Found>(
    `SELECT ${columns} FROM (${own}) AS t WHERE ${where} ORDER BY ${order}t.id DESC LIMIT ${parameters.add(limit)}`,
    parameters.values,
  );
}

const readText = `SELECT ${named} FROM (${all} WHERE own.id = ANY($1::int[])) AS t ORDER BY array_position($1::int[], t.id)`;

/** Returns the subscriptions with these ids, in their order. */
export async function readSubscriptions(
  sql: Sql,
  ids: readonly number[],
): Promise<readonly OwnSubscription[]> {
  return ids.length === 0 ? [] : sql<OwnSubscription>(readText, [ids]);
}
