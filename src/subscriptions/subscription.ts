import { AppError } from "../kit/errors.ts";
import { formatDateTime } from "../kit/date-time.ts";
import type { EventKind } from "../events/event.ts";
import { maskHeaders, type GivenHeaders } from "./own-headers.ts";
import { maskSecret, standardSecret } from "./secret.ts";

/** Resource name of a subscription to every resource that its user may read. */
export const everyResource = "*";

/** Why a subscription gets no attempts (docs/webhooks.md, "States of a subscription"). */
export const disabledReasons = ["owner", "gone", "failing", "user"] as const;
type DisabledReason = (typeof disabledReasons)[number];

/** A subscription as its owner sees it, without the encrypted parts. */
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
  /** False also while the subscription's user is disabled. */
  readonly isActive: boolean;
  readonly disabledAt: Date | null;
  readonly disabledReason: DisabledReason | null;
  readonly failingSince: Date | null;
  readonly lastSuccessAt: Date | null;
  readonly lastAttemptAt: Date | null;
  readonly description: string | null;
  readonly secretHint: string;
  /** When the last previous secret stops signing; may be in the past. */
  readonly previousUntil: Date | null;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

/** A checked subscription to create. */
export interface NewSubscription {
  readonly url: string;
  readonly resource: string;
  readonly events: readonly EventKind[];
  readonly filter: Readonly<Record<string, unknown>> | null;
  readonly headers: GivenHeaders;
  /** Attempts a second. */
  readonly rateLimit: number | null;
  /** The signing secret; undefined when the service creates one. */
  readonly secret: string | undefined;
  readonly isActive: boolean;
  readonly description: string | null;
}

/** Changes by the owner; absent fields stay as they are. */
export type SubscriptionChanges = Partial<Omit<NewSubscription, "resource" | "secret">>;

/**
 * Returns the JSON of a subscription (docs/webhooks.md, "Subscriptions").
 *
 * @param secret Secret in clear text, only in answers that show a new one. Default: the masked
 *   secret.
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

/** Returns the 404 error of a webhook that does not exist, or belongs to another user. */
export function unknownSubscription(): AppError {
  return new AppError("webhook.not_found", "The webhook subscription could not be found.");
}
