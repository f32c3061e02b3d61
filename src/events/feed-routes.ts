import type { UrlOf } from "../http/url-of.ts";
import type { ApiContext, ApiRouter } from "../http/state.ts";
import type { Turns } from "../kit/turns.ts";
import type { EventFeed } from "./event-feed.ts";
import type { EventStreams } from "./event-streams.ts";
import { readableResources, readFeedParameters, unknownEvent, uuidOf } from "./feed-parameters.ts";

export interface FeedRoutesOptions {
  readonly feed: EventFeed;
  readonly streams: EventStreams;
  /** Names of all resources. */
  readonly registered: readonly string[];
  readonly maxPerPage: number;
  /** Limits each user's lists of all kinds together. */
  readonly listTurns: Turns;
  readonly urlOf: UrlOf;
}

/** Bytes set aside for each event of a page before it is read, as for a record of a list. */
const memoryPerEvent = 4096;

/** Adds `events`: the list, the stream and a single event (docs/webhooks.md, "Events"). */
export function addEventRoutes(router: ApiRouter, options: FeedRoutesOptions): void {
  const { feed, streams, registered, maxPerPage, listTurns } = options;

  router.get("/events", async (ctx) => {
    const parameters = readFeedParameters(ctx, { registered, maxPerPage, isStream: false });
    const { query, after = 0n, perPage } = parameters;
    await ctx.state.memory.reserve(perPage * memoryPerEvent);
    const { caller } = ctx.state;
    const page = await listTurns.run(caller.id, () => feed.read({ query, caller, after, take: perPage }));
    const next = page.next > after ? page.next : after;
    const rest = {
      per_page: page.size,
      next_cursor: String(next),
      prev_cursor: null,
      next_page_url: page.hasMore ? nextUrl(options, ctx, next) : null,
      prev_page_url: null,
    };
    ctx.type = "json";
    ctx.body = `{"data":[${page.events.map(({ json }) => json).join(",")}],${JSON.stringify(rest).slice(1)}`;
  });

  router.get("/events/stream", (ctx) => {
    const { query, after } = readFeedParameters(ctx, { registered, maxPerPage, isStream: true });
    streams.open(ctx, { query, after });
  });

  router.get("/events/:uuid", async (ctx) => {
    const uuid = uuidOf(ctx.params["uuid"]);
    const resources = readableResources(ctx, undefined, registered);
    const event = await feed.find(uuid, ctx.state.caller, resources);
    if (event === undefined) throw unknownEvent();
    ctx.type = "json";
    ctx.body = event.json;
  });
}

function nextUrl({ urlOf }: FeedRoutesOptions, ctx: ApiContext, next: bigint): string {
  const url = urlOf(ctx);
  url.searchParams.set("after", String(next));
  return url.href;
}
