import { AppError } from "../kit/errors.ts";
import { formatDateTime } from "../kit/date-time.ts";
import type { EventKind } from "../events/event.ts";
import { maskHeaders, type GivenHeaders } from "./own-headers.ts";
import { maskSecret, standardSecret } from "./secret.ts";

/** Names a subscription to every resource that its user may read. */
export const everyResource = "*";

/** Why a subscription gets no attempts (docs/webhooks.md, "States of a subscription"). */
export type DisabledReason = "owner" | "gone" | "failing" | "user";

/** A subscription as its owner sees it: without anything that is encrypted. */
export interface OwnSubscription {
  readonly id: number;
  readonly userId: number;
  readonly url: string;
  readonly resource: string;
  readonly events: readonly string[];
  /** JSON as the owner gave it. */
  readonly filter: unknown;
  readonly headerNames: readonly string[];
  readonly rateLimit: number | null;
  /** False too while its user is disabled. */
  readonly isActive: boolean;
  readonly disabledAt: Date | null;
  readonly disabledReason: DisabledReason | null;
  readonly failingSince: Date | null;
  readonly lastSuccessAt: Date | null;
  readonly lastAttemptAt: Date | null;
  readonly description: string | null;
  readonly secretHint: string;
  /** When the last of the secrets before this one ends; it may have passed. */
  readonly previousUntil: Date | null;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

/** A subscription to create, checked. */
export interface NewSubscription {
  readonly url: string;
  readonly resource: string;
  readonly events: readonly EventKind[];
  readonly filter: Readonly<Record<string, unknown>> | null;
  readonly headers: GivenHeaders;
  /** Attempts a second. */
  readonly rateLimit: number | null;
  /** Undefined: the service makes one. */
  readonly secret: string | undefined;
  readonly isActive: boolean;
  readonly description: string | null;
}

/** Changes by the owner; absent fields stay. */
export type SubscriptionChanges = Partial<Omit<NewSubscription, "resource" | "secret">>;

/**
 * Returns the JSON of a subscription (docs/webhooks.md, "Subscriptions").
 *
 * @param secret Replaces the masked secret, only in the answers that show a new one.
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
    filter: subscription.filter,
    headers: maskHeaders(subscription.headerNames),
    rate_limit: subscription.rateLimit,
    is_active: subscription.isActive,
    disabled_at: formatDateTime(subscription.disabledAt),
    disabled_reason: subscription.disabledReason,
    failing_since: formatDateTime(subscription.failingSince),
    last_success_at: formatDateTime(subscription.lastSuccessAt),
    last_attempt_at: formatDateTime(subscription.lastAttemptAt),
    description: subscription.description,
    ...(secret === undefined
      ? { masked_secret: maskSecret(subscription.secretHint) }
      : { secret, standard_secret: standardSecret(secret) }),
    previous_secret_until: formatDateTime(subscription.previousUntil),
    created_at: formatDateTime(subscription.createdAt),
    updated_at: formatDateTime(subscription.updatedAt),
  };
}

/** Makes the 404 of a webhook that is not there, or is another user's. */
export function unknownSubscription(): AppError {
  return new AppError("webhook.not_found", "The webhook subscription could not be found.");
}
