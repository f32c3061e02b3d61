export const deliveryStatuses = ["pending", "retrying", "delivered", "failed", "cancelled"] as const;
export type DeliveryStatus = (typeof deliveryStatuses)[number];

/** Why an attempt got no HTTP answer; `http` is an answer outside 2xx. */
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

/** What one POST came to. A value, never an exception. */
export interface AttemptResult {
  readonly startedAt: Date;
  readonly durationMs: number;
  /** Undefined when 2xx. */
  readonly error?: AttemptError;
  /** One line for `last_error`, without secrets; undefined when 2xx. */
  readonly detail?: string;
  readonly statusCode?: number;
  readonly responseHeaders?: Readonly<Record<string, string | readonly string[]>>;
  /** At most 16 KiB. */
  readonly responseBody?: Buffer;
  readonly isResponseTruncated: boolean;
  /** From `Retry-After`, when the answer carried a usable one. */
  readonly retryAfterSeconds?: number;
}

export type NextStep =
  | { readonly kind: "delivered" }
  | { readonly kind: "retry"; readonly delayMs: number }
  | { readonly kind: "failed"; readonly reason: string };
