import type { EventFeed, FeedEvent } from "../events/event-feed.ts";
import { readableResources } from "../events/feed-parameters.ts";
import { memoryOfAnswer } from "../http/error-body.ts";
import type { ApiContext } from "../http/state.ts";
import type { ListsOptions } from "../querying/own-list.ts";
import type { FilteredEvent } from "./filter-answers.ts";
import type { WebhookFilters } from "./filters.ts";
import { everyResource, type NewSubscription } from "./subscription.ts";

interface PreviewOptions extends Pick<ListsOptions, "listTurns"> {
  readonly feed: Pick<EventFeed, "readBack">;
  readonly filters: Pick<WebhookFilters, "passing">;
  /** Names of all resources. */
  readonly registered: readonly string[];
}

/** Most events on which a filter is tried. */
const mostTried = 20;
/** Bytes set aside for each event before it is read. */
const memoryPerEvent = 4096;
const nothing = `{"data":[]}`;

/**
 * Returns the newest events that a subscription names, as JSON. Marks for each whether it passes
 * the filter (docs/webhooks.md, "Filters").
 *
 * @throws AppError `token.scope` when the token may not read the resource; `server.overloaded` when
 *   there is no memory for the answer.
 */
export async function previewEvents(
  ctx: ApiContext,
  { resource, events: triggers, filter }: Pick<NewSubscription, "resource" | "events" | "filter">,
  { feed, filters, registered, listTurns }: PreviewOptions,
): Promise<string> {
  const resources = resourcesOf(ctx, resource, registered);
  const { caller, memory } = ctx.state;
  await memory.reserve(mostTried * memoryPerEvent);
  const query = { resources, triggers };
  // Runs within the turn, so that one user has few evaluations at a time.
  return listTurns.run(caller.id, async () => {
    // The client may have disconnected meanwhile.
    if (ctx.res.destroyed) return nothing;
    const page = await feed.readBack({ query, caller, before: undefined, take: mostTried });
    const asked = { filter: filter === null ? null : JSON.stringify(filter), user: caller };
    const found = await filters.passing(
      eventsOf(ctx, page.events),
      page.events.map(() => [asked]),
    );
    const tried = page.events.map(
      ({ json }, index) => `{"passes":${(found[index] ?? []).length > 0},${json.slice(1)}`,
    );
    const answer = `{"data":[${tried.join(",")}]}`;
    memory.settle(memoryOfAnswer(answer));
    return answer;
  });
}

/** Parses one event at a time, and stops when the client has disconnected. */
function* eventsOf(ctx: ApiContext, events: readonly FeedEvent[]): Iterable<FilteredEvent> {
  for (const { json } of events) {
    if (ctx.res.destroyed) return;
    yield JSON.parse(json) as FilteredEvent;
  }
}

/** Returns the resources to list; none for the operational events, which have no list. */
function resourcesOf(ctx: ApiContext, resource: string, registered: readonly string[]): readonly string[] {
  if (resource === everyResource) return readableResources(ctx, undefined, registered);
  return registered.includes(resource) ? readableResources(ctx, resource, registered) : [];
}
