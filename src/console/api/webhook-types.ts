import type { Delivery, Json, ServiceEvent } from "./types.ts";

/** Reason why a webhook is off; null while it is active. */
export type DisabledReason = "owner" | "gone" | "failing" | "user";

export interface Webhook {
  readonly id: number;
  readonly user_id: number;
  readonly url: string;
  readonly resource: string;
  readonly events: readonly string[];
  readonly filter: Json;
  readonly headers: Readonly<Record<string, string>>;
  readonly rate_limit: number | null;
  readonly is_active: boolean;
  readonly disabled_at: string | null;
  readonly disabled_reason: DisabledReason | null;
  readonly failing_since: string | null;
  readonly last_success_at: string | null;
  readonly last_attempt_at: string | null;
  readonly description: string | null;
  readonly masked_secret: string;
  readonly previous_secret_until: string | null;
  readonly created_at: string;
}

/** A webhook with its secret, as in the answer that creates the secret. */
export interface WebhookWithSecret extends Omit<Webhook, "masked_secret"> {
  readonly secret: string;
  readonly standard_secret: string;
}

export interface Attempt {
  readonly number: number;
  readonly started_at: string;
  readonly duration_ms: number;
  readonly status_code: number | null;
  readonly error: string | null;
  readonly response_headers: Readonly<Record<string, string | readonly string[]>> | null;
  readonly response_body: string | null;
  readonly response_truncated: boolean;
  readonly trigger: string;
  readonly address: string | null;
  readonly dns_ms: number | null;
  readonly connect_ms: number | null;
  readonly tls_ms: number | null;
  readonly first_byte_ms: number | null;
}

export interface TestedAttempt extends Attempt {
  readonly delivery_id: string;
}

/** The request of every attempt of a delivery. */
interface DeliveryRequest {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
}

export interface DeliveryDetail extends Delivery {
  readonly parent_delivery_id: number | null;
  readonly request: DeliveryRequest;
  readonly attempts: readonly Attempt[];
}

export interface Replay {
  readonly id: number;
  readonly webhook_id: number;
  readonly since: string;
  readonly until: string;
  readonly status: readonly string[];
  readonly resource: string | null;
  readonly state: "running" | "paused" | "done" | "cancelled";
  readonly reason: string | null;
  readonly done: number;
  readonly total: number;
  readonly is_estimate: boolean;
  readonly failed: number;
  readonly created_at: string;
}

/** Result of a dry run of a replay. */
export interface ReplayCount {
  readonly count: number;
  readonly is_estimate: boolean;
  readonly event_ids: readonly number[];
}

/** An event on which a filter was tried. */
export interface TriedEvent extends ServiceEvent {
  readonly passes: boolean;
}
