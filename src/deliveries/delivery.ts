export const deliveryStatuses = ["pending", "retrying", "delivered", "failed", "cancelled"] as const;
export type DeliveryStatus = (typeof deliveryStatuses)[number];

/** Why an attempt failed; `http` is an answer outside 2xx. */
export type AttemptError =
  | "dns"
  | "refused"
  | "timeout"
  | "tls"
  | "blocked"
  | "reset"
  | "unreachable"
  | "protocol"
  | "http";

/** Result of one POST: a value, never an exception. */
export interface AttemptResult {
  readonly startedAt: Date;
  readonly durationMs: number;
  /** Undefined for 2xx. */
  readonly error?: AttemptError;
  /** One line for `last_error`, without secrets; undefined for 2xx. */
  readonly detail?: string;
  readonly statusCode?: number;
  readonly responseHeaders?: Readonly<Record<string, string | readonly string[]>>;
  /** At most 16 KiB. */
  readonly responseBody?: Buffer;
  readonly isResponseTruncated: boolean;
  /** From `Retry-After`; undefined without a usable one. */
  readonly retryAfterSeconds?: number;
}

/** What follows an attempt. */
export type NextStep =
  | { readonly kind: "delivered" }
  | { readonly kind: "retry"; readonly delayMs: number }
  | { readonly kind: "failed" };
