import { envelope, cursorEnvelope, type CursorEnvelope, type Envelope } from "../http/page.ts";
import { cursorBinding, cursorPage, cursorsAround, openPosition } from "../querying/cursor-page.ts";
import type { Cursors } from "../querying/cursor.ts";
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
export function subscriptionList(
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
  const binding = cursorBinding(`webhooks of ${owner}`, userId, parameters);
  const position = openPosition(cursors, cursor, binding);
  const read = from(found, position, perPage + 1);
  const places = new Map(found.map(({ id }, index) => [id, index]));
  const page = cursorPage(read, {
    position,
    take: perPage,
    valuesOf: ({ id }) => [String(id), String(places.get(id))],
  });
  return cursorEnvelope({ data: present(page.rows), ...cursorsAround(page, cursors, binding), perPage, url });
}

/**
 * Returns the rows from a position on. A position is an id and its index. When the subscription is
 * gone, the next one has its index.
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
