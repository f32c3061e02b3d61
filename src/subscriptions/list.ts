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

/** Returns whether a request asks for a page. */
export function isPaged({ given }: ListParameters): boolean {
  return paging.some((name) => given.has(name));
}

/** Returns the function that presents subscriptions as a request asks for. */
export function presenterOf({ fields }: ListParameters): (row: OwnSubscription) => unknown {
  const project = fields && createProjection(fields, subscriptionShape.places);
  return (row) => project?.(presentSubscription(row)) ?? presentSubscription(row);
}

/**
 * Returns the page of a request. Only its subscriptions are read: the filters of a single user take
 * 2 MB.
 *
 * @param ids Ids of all subscriptions that match.
 * @param read Reads the subscriptions with these ids.
 * @param url URL of the request, for the page links.
 */
export async function subscriptionPage(
  ids: readonly number[],
  parameters: ListParameters,
  {
    userId,
    owner,
    cursors,
    url,
    read,
  }: {
    readonly userId: number;
    readonly owner: OwnerScope;
    readonly cursors: Cursors;
    readonly url: URL;
    readonly read: (ids: readonly number[]) => Promise<readonly OwnSubscription[]>;
  },
): Promise<Envelope<unknown> | CursorEnvelope<unknown>> {
  const present = async (some: readonly number[]): Promise<readonly unknown[]> =>
    (await read(some)).map(presenterOf(parameters));
  if (parameters.paging.kind === "page") {
    const { page, perPage, skip } = parameters.paging;
    const data = await present(ids.slice(skip, skip + perPage));
    const total = parameters.count === "none" ? undefined : ids.length;
    return envelope({ data, total, hasNext: ids.length > skip + perPage, page, perPage, url });
  }
  const request = { list: `webhooks of ${owner}`, userId, parameters, cursors, url };
  const places = new Map(ids.map((id, index) => [id, index]));
  return answerByCursor(request, async (position, take) => {
    const page = cursorPage(from(ids, position, take + 1), {
      position,
      take,
      valuesOf: (id) => [String(id), String(places.get(id))],
    });
    return { ...page, rows: await present(page.rows) };
  });
}

/**
 * Returns the ids from a position on. A position is an id and its index. When the subscription is
 * gone, the next one has its index.
 */
function from(ids: readonly number[], position: Position | undefined, take: number): readonly number[] {
  if (position === undefined) return ids.slice(0, take);
  const [id = 0, place] = position.values.map(Number);
  const at = ids.indexOf(id);
  if (position.isBackwards)
    return ids
      .slice(0, at === -1 ? place : at)
      .toReversed()
      .slice(0, take);
  const start = at === -1 ? (place ?? 0) : at + 1;
  return ids.slice(start, start + take);
}
