import { setParameter } from "../http/url-of.ts";
import type { ApiContext, ApiRouter } from "../http/state.ts";
import { AppError, overloadedError } from "../kit/errors.ts";
import type { FairPlaces } from "../kit/fair-places.ts";
import { isUuid } from "../kit/ids.ts";
import type { ListsOptions } from "../querying/own-list.ts";
import { pageAnswer } from "../resources/write-page.ts";
import type { EventFeed, FeedPage } from "./event-feed.ts";
import type { EventHorizon } from "./event-horizon.ts";
import type { EventStreams } from "./event-streams.ts";
import { readableResources, readFeedParameters, refuseAhead } from "./feed-parameters.ts";

export interface FeedRoutesOptions extends Omit<ListsOptions, "cursors"> {
  readonly feed: EventFeed;
  readonly streams: EventStreams;
  readonly horizon: Pick<EventHorizon, "latest">;
  /** Names of all resources. */
  readonly registered: readonly string[];
  /** Places of the pages of all users: ten of 4 MB at once took all of both cores. */
  readonly pages: FairPlaces;
  /** Limit of the wait of a page for its place. */
  readonly pageWaitMs: number;
}

/** Bytes set aside for each event of a page before it is read, as for a record of a list. */
const memoryPerEvent = 4096;

/** Adds `events`: the list, the stream and a single event (docs/webhooks.md, "Events"). */
export function addEventRoutes(router: ApiRouter, options: FeedRoutesOptions): void {
  const { feed, streams, horizon, registered, maxPerPage, listTurns, pages, pageWaitMs } = options;

  router.get("/events", async (ctx) => {
    const parameters = readFeedParameters(ctx, { registered, maxPerPage, isStream: false });
    const { query, after = 0n, afterText, before, perPage: take } = parameters;
    await refuseAhead(horizon, "after", afterText);
    await ctx.state.memory.reserve(take * memoryPerEvent);
    const { caller } = ctx.state;
    const read = (): Promise<FeedPage> =>
      before === undefined
        ? feed.read({ query, caller, after, take })
        : feed.readBack({ query, caller, before: before === "newest" ? undefined : before, take });
    const page = await listTurns.run(caller.id, () => pages.runWithin(caller.id, pageWaitMs, read));
    if (page === undefined) throw overloadedError(5);
    const name = before === undefined ? "after" : "before";
    const next = before !== undefined || page.next > after ? page.next : after;
    const envelope = {
      data: [],
      per_page: page.size,
      // There is no page before the first event. There will be events after the last one.
      next_cursor: before !== undefined && !page.hasMore ? null : String(next),
      prev_cursor: null,
      next_page_url: page.hasMore ? nextUrl(options, ctx, name, next) : null,
      prev_page_url: null,
    };
    ctx.type = "json";
    const records = page.events.map(({ json }) => json);
    ctx.body = await pageAnswer(caller.id, records, envelope);
  });

  router.get("/events/stream", async (ctx) => {
    const { query, after, afterText } = readFeedParameters(ctx, { registered, maxPerPage, isStream: true });
    await refuseAhead(horizon, "after", afterText);
    await refuseAhead(horizon, "Last-Event-ID", ctx.get("Last-Event-ID"));
    // The client may have left meanwhile: its stream would never end.
    if (!ctx.res.destroyed) streams.open(ctx, { query, after });
  });

  router.get("/events/:uuid", async (ctx) => {
    const { uuid = "" } = ctx.params;
    if (!isUuid(uuid)) throw unknownEvent();
    const resources = readableResources(ctx, undefined, registered);
    const event = await feed.find(uuid, ctx.state.caller, resources);
    if (event === undefined) throw unknownEvent();
    ctx.type = "json";
    ctx.body = event.json;
  });
}

function unknownEvent(): AppError {
  return new AppError("event.not_found", "The event could not be found.");
}

function nextUrl({ urlOf }: FeedRoutesOptions, ctx: ApiContext, name: string, next: bigint): string {
  const url = urlOf(ctx);
  setParameter(url, name, String(next));
  return url.href;
}
