import { serviceEvents, type EventKind } from "../events/event.ts";
import { triggers } from "../mapping/definition.ts";

export const deliveryStatuses = ["pending", "retrying", "held", "delivered", "failed", "cancelled"] as const;
export type DeliveryStatus = (typeof deliveryStatuses)[number];

/** The events that a delivery can report. */
export const deliveredEvents: readonly EventKind[] = [...triggers, ...serviceEvents];

/** `last_error` of a delivery that ended because the payload of its event was erased. */
export const erasedReason = "The record was erased.";

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

/** The cause of an attempt: its schedule, a manual retry, a replay or a test delivery. */
export type AttemptTrigger = "scheduled" | "manual" | "replay" | "test";

/** The address and the durations of a POST. A part that the POST did not reach is undefined. */
export interface AttemptTimings {
  /** IP address of the receiver. */
  readonly address?: string | undefined;
  /**
   * Duration of the DNS look-up; undefined for an IP address in the URL. On a kept connection, this
   * and the next two are undefined.
   */
  readonly dnsMs?: number | undefined;
  readonly connectMs?: number | undefined;
  readonly tlsMs?: number | undefined;
  /** Time from the start of the attempt to the head of the answer. */
  readonly firstByteMs?: number | undefined;
}

/** Result of one POST: a value, never an exception. */
export interface AttemptResult extends AttemptTimings {
  readonly startedAt: Date;
  readonly durationMs: number;
  /** Kind of the failure; undefined for 2xx. */
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

/** The step after an attempt: the delivery ends, or there is a retry. */
export type NextStep =
  | { readonly kind: "delivered" }
  | { readonly kind: "retry"; readonly delayMs: number }
  | { readonly kind: "failed" };
