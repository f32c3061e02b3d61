import { envelope, type CursorEnvelope, type Envelope } from "../http/page.ts";
import { answerByCursor, cursorPage } from "../querying/cursor-page.ts";
import type { Cursors, Position } from "../querying/cursor.ts";
import type { ListParameters } from "../querying/list-parameters.ts";
import { createProjection } from "../querying/projection.ts";
import { subscriptionShape, type OwnerScope } from "./own-subscriptions.ts";
import { presentSubscription, type OwnSubscription } from "./subscription.ts";

/**
 * Parameters that request pages. Without any, the answer holds all subscriptions, for old clients.
 */
const paging = ["page", "per_page", "count", "cursor"];

/**
 * Returns the answer to a list request.
 *
 * @param found All subscriptions that match.
 * @param url URL of the request, for the page links.
 */
export async function subscriptionList(
  found: readonly OwnSubscription[],
  parameters: ListParameters,
  {
    userId,
    owner,
    cursors,
    url,
  }: {
    readonly userId: number;
    readonly owner: OwnerScope;
    readonly cursors: Cursors;
    readonly url: URL;
  },
): Promise<{ readonly data: readonly unknown[] } | Envelope<unknown> | CursorEnvelope<unknown>> {
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
  const request = { list: `webhooks of ${owner}`, userId, parameters, cursors, url };
  const places = new Map(found.map(({ id }, index) => [id, index]));
  return answerByCursor(request, async (position, take) => {
    const page = cursorPage(from(found, position, take + 1), {
      position,
      take,
      valuesOf: ({ id }) => [String(id), String(places.get(id))],
    });
    return { ...page, rows: present(page.rows) };
  });
}

/**
 * Returns the rows from a position on. A position is an id and its index. When the subscription is
 * gone, the next one has its index.
 */
function from(
  found: readonly OwnSubscription[],
  position: Position | undefined,
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
