import type { Sql } from "../db/sql.ts";
import { createSender, type Sender } from "../deliveries/attempt/send.ts";
import { createReadRight } from "../deliveries/read-right.ts";
import { addDeliveryRoutes, type DeliveryRoutesOptions } from "../deliveries/routes.ts";
import { createTestWebhook } from "../deliveries/test-delivery.ts";
import { addTestRoute } from "../deliveries/test-route.ts";
import type { EventFeed } from "../events/event-feed.ts";
import type { ApiRouter } from "../http/state.ts";
import { createTargetPolicy, perUser } from "../outbound/targets.ts";
import { refusalOfWebhook } from "../resources/silent-webhooks.ts";
import type { Eligibility } from "../subscriptions/eligibility.ts";
import { createWebhookFilters, type WebhookFilters } from "../subscriptions/filters.ts";
import { findSubscription } from "../subscriptions/own-subscriptions.ts";
import { previewEvents } from "../subscriptions/preview.ts";
import { addSubscriptionRoutes } from "../subscriptions/routes.ts";
import { eventsOf, isService, refusalOfService } from "../subscriptions/service-events.ts";
import { createSubscriptionStore } from "../subscriptions/store.ts";
import type { Configuration } from "./configuration.ts";
import type { Infrastructure } from "./infrastructure.ts";

/**
 * Adds the routes of webhooks, their test and their deliveries. Returns the filters, which replays
 * need too, and the sender, which the API closes at its end.
 */
export function addWebhooks(
  router: ApiRouter,
  { log, sql, transact, secretBox }: Infrastructure,
  { config, definitions }: Configuration,
  options: Omit<DeliveryRoutesOptions, "readRight" | "manualRetryLimit"> & {
    readonly eligibility: Pick<Eligibility, "judge">;
    readonly feed: EventFeed;
    readonly listSql: Sql;
    readonly registered: readonly string[];
  },
): { readonly filters: WebhookFilters; readonly sender: Sender } {
  const policyFor = perUser(config.webhooks, createTargetPolicy);
  const filters = createWebhookFilters({ definitions, log });
  addSubscriptionRoutes(router, {
    ...options,
    sql,
    store: createSubscriptionStore({ ...config.webhooks, sql, transact, secretBox }),
    preview: (ctx, asked) => previewEvents(ctx, asked, { ...options, filters }),
    rulesFor(caller) {
      const refusalOfResource = (name: string): string | undefined =>
        isService(definitions, name)
          ? refusalOfService(caller)
          : refusalOfWebhook(definitions.get(name), definitions, caller);
      const mayRead = (name: string): boolean => refusalOfResource(name) === undefined;
      return {
        triggersOf: (name) => eventsOf(definitions, name),
        resourceNames: [...definitions.keys()],
        filterFaults: (filter, of) => filters.faultsOf(filter, { ...of, mayRead }),
        refusalOfUrl: (url) => policyFor(caller).refusalOfUrl(url),
        refusalOfResource,
      };
    },
  });
  const sender = createSender({ ...config.webhooks, maxSockets: config.webhooks.concurrency });
  addTestRoute(router, {
    ...options,
    testWebhook: createTestWebhook({
      sql,
      transact,
      send: (post, user) => sender.send(post, user),
      secretBox,
      timeoutMs: config.webhooks.timeoutMs,
    }),
    timeoutMs: config.webhooks.timeoutMs,
    isOwn: async (id, userId) => (await findSubscription(sql, id, userId)) !== undefined,
  });
  addDeliveryRoutes(router, {
    ...options,
    manualRetryLimit: config.webhooks.manualRetryLimit,
    readRight: createReadRight({ sql, eligibility: options.eligibility }),
  });
  return { filters, sender };
}
