import { formatDateTime } from "../kit/date-time.ts";
import type { SubscriptionModel } from "../db/generated/models.ts";
import type { Trigger } from "../mapping/definition.ts";
import { maskSecret } from "./secret.ts";

/**
 * A subscription as its owner sees it: without the encrypted secret, which only the dispatcher
 * decrypts.
 */
export type OwnSubscription = Omit<SubscriptionModel, "encryptedSecret">;

export interface NewSubscription {
  readonly url: string;
  readonly resource: string;
  readonly events: readonly Trigger[];
  readonly isActive: boolean;
  readonly description: string | null;
}

/** Changes by the owner; absent fields stay. */
export type SubscriptionChanges = Partial<Omit<NewSubscription, "resource">>;

/**
 * Returns the JSON of a subscription (docs/webhooks.md, "Subscriptions").
 *
 * @param secret Replaces the masked secret, only in the answer to the creation.
 */
export function presentSubscription(
  subscription: OwnSubscription,
  secret?: string,
): Readonly<Record<string, unknown>> {
  return {
    id: subscription.id,
    user_id: subscription.userId,
    url: subscription.url,
    resource: subscription.resource,
    events: subscription.events,
    is_active: subscription.isActive,
    description: subscription.description,
    ...(secret === undefined ? { masked_secret: maskSecret(subscription.secretHint) } : { secret }),
    created_at: formatDateTime(subscription.createdAt),
    updated_at: formatDateTime(subscription.updatedAt),
  };
}
