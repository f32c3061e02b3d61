import { envelope, cursorEnvelope, type CursorEnvelope, type Envelope } from "../http/page.ts";
import type { Sql } from "../db/sql.ts";
import { conditionText, createParameters } from "../querying/condition-text.ts";
import type { Condition } from "../querying/condition.ts";
import { cursorBinding, cursorPage, openPosition } from "../querying/cursor-page.ts";
import type { Cursors } from "../querying/cursor.ts";
import { fixedShape } from "../querying/fixed-shape.ts";
import type { ListParameters } from "../querying/list-parameters.ts";
import { orderText, type OrderItem } from "../querying/order.ts";
import { createProjection } from "../querying/projection.ts";
import { presentSubscription, type OwnSubscription } from "./subscription.ts";

/** A user has few subscriptions, so that no filter or sort needs an index of its own. */
export const subscriptionShape = fixedShape([
  { name: "id", type: "Int" },
  { name: "user_id", type: "Int" },
  { name: "url", type: "String" },
  { name: "resource", type: "String" },
  { name: "events", type: "String", isList: true },
  { name: "is_active", type: "Boolean" },
  { name: "description", type: "String", isOptional: true },
  { name: "masked_secret", type: "String", fault: "a secret" },
  { name: "created_at", type: "DateTime" },
  { name: "updated_at", type: "DateTime" },
]);

/**
 * Returns a user's subscriptions that match the filter, in the given order or newest first.
 *
 * @param sql Reads by index and without statement names (`createIndexSql`): clients make many
 *   shapes of texts.
 */
export async function findSubscriptions(
  sql: Sql,
  userId: number,
  { filter, sort }: { readonly filter: Condition; readonly sort: readonly OrderItem[] | undefined },
): Promise<readonly OwnSubscription[]> {
  const parameters = createParameters();
  // Without OFFSET 0 the planner may read all users' subscriptions in the order of ids, to save the
  // sort.
  const own = `SELECT * FROM svc.subscriptions WHERE user_id = ${parameters.add(userId)} OFFSET 0`;
  const where = conditionText(filter, "t", parameters);
  const order = sort === undefined ? "" : `${orderText(sort, () => "t")}, `;
  return sql<OwnSubscription & Record<string, unknown>>(
    `SELECT t.id, t.user_id AS "userId", t.url, t.resource, t.events, t.is_active AS "isActive", t.description,
      t.secret_hint AS "secretHint", t.created_at AS "createdAt", t.updated_at AS "updatedAt"
    FROM (${own}) AS t WHERE ${where} ORDER BY ${order}t.id DESC`,
    parameters.values,
  );
}

/**
 * Parameters that ask for pages. Without any, the answer holds all subscriptions, as it always did.
 */
const paging = ["page", "per_page", "count", "cursor"];

/**
 * Makes the answer to a list.
 *
 * @param found All that there are.
 * @param url URL of the request, for the links.
 */
export function subscriptionList(
  found: readonly OwnSubscription[],
  parameters: ListParameters,
  { userId, cursors, url }: { readonly userId: number; readonly cursors: Cursors; readonly url: URL },
): { readonly data: readonly unknown[] } | Envelope<unknown> | CursorEnvelope<unknown> {
  const project = parameters.fields && createProjection(parameters.fields, subscriptionShape.places);
  const present = (rows: readonly OwnSubscription[]): readonly unknown[] =>
    rows.map((row) => presentSubscription(row)).map((row) => project?.(row) ?? row);
  if (!paging.some((name) => parameters.given.has(name))) return { data: present(found) };
  if (parameters.paging.kind === "page") {
    const { page, perPage, skip } = parameters.paging;
    const data = present(found.slice(skip, skip + perPage));
    const total = parameters.count === "none" ? undefined : found.length;
    return envelope({ data, total, hasNext: found.length > skip + perPage, page, perPage, url });
  }
  const { cursor, perPage } = parameters.paging;
  const binding = cursorBinding("webhooks", userId, parameters);
  const position = openPosition(cursors, cursor, binding);
  const read = from(found, position, perPage + 1);
  const places = new Map(found.map(({ id }, index) => [id, index]));
  const { rows, next, previous } = cursorPage(read, {
    position,
    take: perPage,
    valuesOf: ({ id }) => [String(id), String(places.get(id))],
  });
  const seal = (one: typeof next): string | undefined => one && cursors.seal(one, binding);
  return cursorEnvelope({ data: present(rows), next: seal(next), previous: seal(previous), perPage, url });
}

/**
 * Returns the rows from a position on. A position is an id and its place: when that subscription is
 * gone, the next one has moved up to the place.
 */
function from(
  found: readonly OwnSubscription[],
  position: ReturnType<typeof openPosition>,
  take: number,
): readonly OwnSubscription[] {
  if (position === undefined) return found.slice(0, take);
  const [id, place] = position.values.map(Number);
  const at = found.findIndex((one) => one.id === id);
  if (position.isBackwards)
    return found
      .slice(0, at === -1 ? place : at)
      .toReversed()
      .slice(0, take);
  const start = at === -1 ? (place ?? 0) : at + 1;
  return found.slice(start, start + take);
}
