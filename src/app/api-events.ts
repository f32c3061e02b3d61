import { createTextSql } from "../db/text-sql.ts";
import { createSql } from "../db/sql.ts";
import { createEventFeed, type EventFeed, type EventFeedOptions } from "../events/event-feed.ts";
import { createEventPresenter } from "../events/event-presenter.ts";
import { createEventStreams, type EventStreams, type EventStreamsOptions } from "../events/event-streams.ts";
import { addEventRoutes, type FeedRoutesOptions } from "../events/feed-routes.ts";
import type { ApiRouter } from "../http/state.ts";
import { createFairPlaces } from "../kit/fair-places.ts";
import type { Configuration } from "./configuration.ts";
import { halfOf, type Infrastructure } from "./infrastructure.ts";
import { namesOf } from "./statement-names.ts";

/**
 * Adds the routes of events. Returns the streams, which a worker of the API feeds, and the feed
 * that reads events. `present` presents them, over the connections of lists.
 */
export function addEvents(
  router: ApiRouter,
  { database, isEmbedded, eventHorizon: horizon }: Infrastructure,
  { definitions, models }: Configuration,
  options: Omit<FeedRoutesOptions, "feed" | "streams" | "horizon" | "pages" | "pageWaitMs"> &
    Pick<EventFeedOptions, "judge" | "listSql"> &
    Pick<EventStreamsOptions, "recheck">,
): { readonly streams: EventStreams; readonly feed: EventFeed } & Pick<EventFeedOptions, "present"> {
  const sql = createSql({ pool: database.lists, isEmbedded });
  const present = createEventPresenter({
    definitions,
    delegateOf: async (model) => (await models.get()).listDelegate(model),
    sql: createTextSql(database.lists, namesOf(isEmbedded, definitions)),
  });
  const feed = createEventFeed({ ...options, sql, horizon, present });
  const streams = createEventStreams({ ...options, feed, horizon });
  const pages = createFairPlaces(halfOf(database.lists));
  addEventRoutes(router, { ...options, feed, streams, horizon, pages, pageWaitMs: 20_000 });
  return { streams, feed, present };
}
