import { formatDateTime } from "../kit/date-time.ts";
import type { SubscriptionModel } from "../db/generated/models.ts";
import type { Trigger } from "../mapping/definition.ts";
import { maskSecret } from "./secret.ts";

/** A subscription without its sealed secret, which only the dispatcher opens. */
export type Subscription = Omit<SubscriptionModel, "encryptedSecret">;

export interface NewSubscription {
  readonly url: string;
  readonly resource: string;
  readonly events: readonly Trigger[];
  readonly isActive: boolean;
  readonly description: string | null;
}

/** What its owner may change; what is absent stays. */
export type SubscriptionChanges = Partial<Omit<NewSubscription, "resource">>;

/**
 * The JSON of a subscription (contract, section 4).
 *
 * @param secret Only in the answer to its creation, in the place of the masked one.
 */
export function presentSubscription(
  subscription: Subscription,
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
